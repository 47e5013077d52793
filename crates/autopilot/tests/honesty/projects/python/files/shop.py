"""A shop."""


def total(prices):
    """The sum of the prices."""
    return sum(prices)


def label(name):
    """The name as it is printed."""
    return name.strip().title()
