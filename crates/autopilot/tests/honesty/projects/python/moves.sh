feature() { printf '\n\ndef discounted(prices, percent):\n    """The total less some percent."""\n    return total(prices) * (100 - percent) / 100\n' >> shop.py; }
tests() { printf '\n\ndef test_discounted():\n    assert shop.discounted([100], 10) == 90\n' >> tests/test_shop.py; }
works() { feature; tests; }
# Breaks what the test of labels expects.
breaks() { works; sed -i 's/name.strip().title()/name.upper()/' shop.py; }
