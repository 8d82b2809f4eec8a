from keras_attention.checks.classes import comes_first


def test_the_earlier_class_in_the_order_of_resolution_counts():
    old = type("Old", (), {"call": 1, "prepare": 1})
    mixin = type("Mixin", (), {"call": 2})
    assert not comes_first(old, "call", "prepare")
    assert comes_first(type("New", (old,), {"call": 2}), "call", "prepare")
    assert comes_first(type("Mixed", (mixin, old), {}), "call", "prepare")
    assert not comes_first(type("Same", (old,), {}), "call", "prepare")
    assert not comes_first(type("Both", (old,), {"call": 2, "prepare": 2}), "call", "prepare")
