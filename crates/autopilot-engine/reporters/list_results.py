"""A plugin of pytest that writes which tests are collected and how each of them ends."""

import json
import os

import pytest

_NAME = __name__
_HERE = os.path.dirname(os.path.abspath(__file__))
_OWNER = os.getpid()


def _leave(variable, separator, own):
    """Programs that the tests start need not load the plugin, nor find it."""
    kept = [part for part in os.environ.get(variable, "").split(separator) if part and part != own]
    if kept:
        os.environ[variable] = separator.join(kept)
    else:
        os.environ.pop(variable, None)


_leave("PYTEST_PLUGINS", ",", _NAME)
_leave("PYTHONPATH", os.pathsep, _HERE)


class _Recorder(object):
    def __init__(self, path):
        self.path = path
        self.tests = {}

    def put(self, event):
        # A process that a test has forked has nothing to report.
        if os.getpid() != _OWNER:
            return
        try:
            line = (json.dumps(event) + "\n").encode("utf-8", "replace")
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except Exception:
            # Without a report only the exit code is known.
            pass

    def pytest_sessionstart(self, session):
        self.put({"began": "pytest in " + os.path.basename(os.getcwd())})

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        if not session.config.getoption("collectonly", False):
            self.put({"listed": [item.nodeid for item in session.items]})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self.put({"listed": [str(one) for one in ids]})

    def pytest_collectreport(self, report):
        if report.failed:
            self.put({"not_loaded": report.nodeid})
        elif report.skipped:
            self.put({"ended": {"id": report.nodeid, "outcome": "skipped"}})

    def pytest_runtest_logreport(self, report):
        if report.when == "setup":
            self.tests[report.nodeid] = ["passed", 0.0]
        known = self.tests.setdefault(report.nodeid, ["passed", 0.0])
        known[1] += (getattr(report, "duration", 0.0) or 0.0) * 1000
        if report.outcome == "failed":
            known[0] = "failed"
        elif report.outcome == "skipped" and known[0] == "passed":
            # So is a test that is expected to fail, and does.
            known[0] = "skipped"
        if report.when not in ("setup", "call"):
            outcome, ms = self.tests.pop(report.nodeid)
            self.put({"ended": {"id": report.nodeid, "outcome": outcome, "ms": round(ms, 3)}})

    def pytest_sessionfinish(self, session):
        self.put("finished")


_RECORDER = _Recorder(
    os.path.join(os.path.dirname(_HERE), "results", "pytest-%d.events" % os.getpid())
)
# Whatever follows, such as a file of settings that fails, follows the plugin.
_RECORDER.put("loaded")


def pytest_configure(config):
    # Workers of xdist report to the process that started them.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_RECORDER)
