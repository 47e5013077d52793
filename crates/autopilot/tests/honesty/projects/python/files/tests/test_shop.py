import shop


def test_total():
    assert shop.total([1, 2, 3]) == 6


def test_total_of_nothing():
    assert shop.total([]) == 0


def test_label():
    assert shop.label(" green tea ") == "Green Tea"
