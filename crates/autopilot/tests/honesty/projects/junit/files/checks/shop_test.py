import shop


def check_total():
    assert shop.total([1, 2, 3]) == 6


def check_total_of_nothing():
    assert shop.total([]) == 0


def check_label():
    assert shop.label(" green tea ") == "Green Tea"
