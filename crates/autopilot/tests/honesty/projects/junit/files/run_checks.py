"""Runs every function of checks/ that begins with check_, and writes a report as JUnit does."""
import importlib
import pathlib
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, ".")
cases, failed = [], 0
for file in sorted(pathlib.Path("checks").glob("*_test.py")):
    module = importlib.import_module(f"checks.{file.stem}")
    for name in sorted(dir(module)):
        if not name.startswith("check_"):
            continue
        try:
            getattr(module, name)()
            cases.append(f'<testcase classname="{file.stem}" name="{name}"/>')
        except Exception as error:
            failed += 1
            cases.append(
                f'<testcase classname="{file.stem}" name="{name}"><failure>{escape(repr(error))}</failure></testcase>'
            )
pathlib.Path("reports").mkdir(exist_ok=True)
pathlib.Path("reports/TEST-shop.xml").write_text(f"<testsuite>{''.join(cases)}</testsuite>")
sys.exit(1 if failed else 0)
