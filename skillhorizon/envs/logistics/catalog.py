"""What the desk knows beside its rules: how goods are packed, and what its log says of bookings."""

PACKAGING = {
    "general": ("pallet", "carton", "roll container"),
    "perishable": ("cool box", "insulated pallet", "ice carton"),
    "live": ("ventilated crate", "water tank", "kennel"),
    "hazardous": ("drum", "steel cylinder", "lined case"),
    "specialist": ("climate case", "shock-proof crate", "escorted case"),
}
LOG_LINES = (
    "Asks for an aisle seat where there is a choice.",
    "Has been told of the cancellation by text message.",
    "Travels on a flexible fare, so no surcharge applies.",
    "Would rather wait at a hub than change twice.",
    "Keeps the hotel at the destination informed.",
    "Was promised news by the evening.",
    "Carries a laptop that stays in the cabin.",
    "Answers the telephone for the whole party.",
    "Meal vouchers were handed out at the counter.",
    "Does not want to be called before eight.",
    "Holds tickets for an event on the day after.",
    "Has asked twice whether the bags come along.",
    "A relative waits at the last hub with a car.",
    "Paid for the seats together with another party.",
    "Accepted the new terms of carriage in writing.",
    "Wants the confirmation in print as well.",
)
CHANNELS = ("telephone", "counter", "message", "mail")
