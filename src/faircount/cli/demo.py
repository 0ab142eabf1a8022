"""`faircount demo`: the main job, start to end, on made-up answers."""

import click

CITIES = {
    "Aldmoor": 176, "Brackwater": 143, "Carrow": 118, "Dunholm": 96, "Eastmere": 74, "Fennick": 58,
    "Garside": 44, "Hollin": 33, "Ivybridge": 24, "Jarrow End": 17, "Kestrel Bay": 11, "Lowtide": 6,
}  # fmt: skip


@click.command()
@click.option("--epsilon", default=1.0, show_default=True, help="Privacy loss of the survey.")
def demo(epsilon: float) -> None:
    """Private frequencies of a made-up company's 800 users, start to end."""
    import numpy as np

    import faircount as fc
    from faircount.cli.show import bars, console, notes
    from faircount.estimation.presentation import AGAIN
    from faircount.planning.question import cautions

    cities = list(CITIES)
    answers = np.random.default_rng(7).permutation(np.repeat(cities, list(CITIES.values())))
    truth = np.array(list(CITIES.values())) / answers.size
    ours, local = fc.Laplace(items=cities, epsilon=epsilon), fc.OUE(items=cities, epsilon=epsilon)
    out = console()
    out.print(
        f"A company asks {answers.size} users for their city. Nobody sees an answer; no single server is trusted.\n"
    )
    with out.status("every user adds noise nobody else knows, and splits its row between two servers ..."):
        result = fc.run(answers, ours)
    bars(out, result, truth=truth)
    out.print(f"\nPrivacy: {result.guarantee}.")
    out.print(f"Again: {AGAIN}.")
    out.print(
        f"Every answer travelled as two shares over F_{result.facts['modulus']}, each of them random by itself, "
        "sealed; the servers added them up and opened one sum."
    )
    both = (result, fc.run(answers, local))
    here, there = (float(np.sqrt(np.mean((each.estimates - truth) ** 2))) for each in both)
    out.print(
        f"Root mean squared error: {here:.4f} here, {there:.4f} with local differential privacy (OUE) at the same "
        f"epsilon on the same users."
    )
    notes(out, cautions(epsilon))
