"""What every environment shares. Nothing here knows an environment by name."""
