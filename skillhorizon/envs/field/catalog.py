"""Names and ranges from which devices are built: channels with their unit and range, models, places, log lines."""

from __future__ import annotations

Channel = tuple[str, int, int]

CHANNELS: dict[str, dict[str, Channel]] = {
    "pump": {
        "bearing_temp": ("C", 20, 75),
        "vibration": ("um/s", 200, 2800),
        "motor_current": ("dA", 60, 240),
        "seal_leak": ("mL/h", 0, 60),
    },
    "regulator": {
        "pilot_pressure": ("kPa", 80, 220),
        "droop": ("kPa", 0, 30),
        "lockup": ("kPa", 5, 45),
        "response_time": ("ms", 200, 1500),
    },
    "valve": {
        "seat_leak": ("mL/h", 0, 80),
        "stem_torque": ("Nm", 10, 90),
        "travel": ("mm", 180, 260),
        "packing_leak": ("mL/h", 0, 40),
    },
    "actuator": {
        "supply_pressure": ("kPa", 350, 700),
        "stroke_time": ("ms", 800, 4200),
        "position_error": ("permille", 0, 25),
        "coil_resistance": ("ohm", 40, 120),
    },
    "meter": {
        "zero_drift": ("ppm", 0, 150),
        "pulse_loss": ("ppm", 0, 90),
        "signal_level": ("mV", 300, 900),
        "coil_current": ("mA", 90, 160),
    },
    "strainer": {
        "differential": ("kPa", 2, 28),
        "turbidity": ("mNTU", 20, 400),
        "basket_load": ("percent", 0, 65),
        "flush_flow": ("L/min", 30, 110),
    },
}
"""The four diagnostic channels of each class."""

SPARE_CHANNELS: dict[str, Channel] = {
    "ambient_temp": ("C", 2, 38),
    "humidity": ("percent", 15, 80),
    "line_pressure": ("kPa", 250, 750),
    "battery": ("mV", 3100, 4200),
    "noise": ("dB", 30, 85),
    "run_time": ("h", 0, 9000),
}
"""Channels that no signature names."""

MODELS: dict[str, tuple[str, ...]] = {
    "pump": ("PX-210", "PX-340"),
    "regulator": ("RD-15", "RD-28"),
    "valve": ("GV-80", "GV-125"),
    "actuator": ("EA-4", "EA-9"),
    "meter": ("MF-50", "MF-100"),
    "strainer": ("SB-2", "SB-6"),
}

LOCATIONS = ("surface", "surface", "kiosk", "kiosk", "chamber")

LOG_LINES = (
    "visual check, no leaks seen at the flanges",
    "enclosure cleaned, seals in good order",
    "operator reports unsteady readings at night",
    "fault reported by the control room, not reset",
    "isolated by remote command after alarm",
    "lubricated according to the yearly plan",
    "nameplate photographed for the register",
    "gasket of the cover replaced last year",
    "access road flooded, visit postponed",
    "readings taken twice, second set kept",
)
