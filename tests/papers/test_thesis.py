import pytest

from surelearn.bounds import boosting_vc, smallest_margin, vapnik, vc_dimension_of_stumps
from surelearn.papers import thesis


@pytest.mark.parametrize("cell", thesis.TABLE_5_1)
def test_table_5_1_is_met_by_the_form_without_e_and_exceeded_by_the_theorem(cell):
    printed, variant, theorem = thesis.table_5_1()[cell]
    assert variant == pytest.approx(printed, abs=5.1e-5)
    assert theorem > printed * 1.05


def test_the_theorem_where_the_table_prints_4_3671():
    assert boosting_vc(0.0, 600, 0.05, rounds=10, vc_dimension=7) == pytest.approx(4.8310, abs=5e-5)


@pytest.mark.parametrize("cell", thesis.TABLE_5_2)
def test_table_5_2_is_met_by_vapnik_with_the_conjectured_dimension(cell):
    printed, variant = thesis.table_5_2()[cell]
    assert variant == pytest.approx(printed, abs=5.1e-5)


def test_the_variant_of_table_5_2_is_our_theorem_at_whole_dimensions():
    assert thesis._vapnik_at_zero(6000, 0.05, 350) == pytest.approx(
        vapnik(0.0, 6000, 0.05, vc_dimension=350)
    )


def test_smallest_margin_of_section_5_4():
    assert smallest_margin(600, thesis.counting_bound_on_stumps(12)) == pytest.approx(
        0.7133, abs=5e-5
    )


def test_the_counting_argument_is_an_upper_bound_on_the_exact_dimension():
    for d in range(1, 200):
        assert thesis.counting_bound_on_stumps(d) >= vc_dimension_of_stumps(d)
