"""`surelearn theorems`: what can be claimed, by which theorem."""

from __future__ import annotations

import click


@click.command("theorems")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the theorems, or one of them with its assumptions and a worked number."""
    from surelearn import bounds
    from surelearn.claim import find_theorem

    if name is None:
        width = max(len(theorem.key) for theorem in bounds.theorems())
        for theorem in bounds.theorems():
            click.echo(
                f"{theorem.key:<{width}}  {theorem.claims.label} {theorem.claims.relation} …,"
                f" {theorem.claims.holds}"
            )
        return
    theorem = find_theorem(name)
    click.echo(f"{theorem.name}\n{theorem.reference}\n")
    click.echo((theorem.__doc__ or "").split("\n\n    Examples")[0].replace("\n    ", "\n"))
    click.echo("\nAssumes")
    for line in theorem.assumes or ("nothing beyond its inputs",):
        click.echo(f"  {line}")
    inputs = ", ".join(f"{key}={_short(value)}" for key, value in theorem.example.items())
    click.echo(f"\nFor example\n  {theorem.key}({inputs})\n  {theorem.certify(**theorem.example)}")


def _short(value: object) -> str:
    return (
        f"({', '.join(map(str, value[:4]))}, … {len(value)} numbers)"
        if isinstance(value, tuple)
        else str(value)
    )
