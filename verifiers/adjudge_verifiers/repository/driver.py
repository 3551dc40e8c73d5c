"""Our program in the box: it starts the test runner and is gone. It decides nothing.

It is sent as text and runs under whatever Python the image has, from 3.6 on. The test runner is imported before the
repository is on the path, so that no file of the repository takes the place of one of its modules.
"""

from __future__ import annotations

__all__ = ["DRIVER"]

DRIVER = r"""
import json, os, sys

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "config.json")) as stream:
    config = json.load(stream)
sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") not in (here, os.getcwd())]


def run_pytest():
    import pytest
    import _pytest.junitxml, _pytest.assertion.rewrite, xml.etree.ElementTree, unittest, difflib
    sys.path.insert(0, os.getcwd())
    return lambda: pytest.main(config["args"])


def run_unittest():
    import time, unittest, traceback
    from xml.sax.saxutils import escape, quoteattr

    class Result(unittest.TextTestResult):
        def __init__(self, *args, **kwargs):
            super(Result, self).__init__(*args, **kwargs)
            self.cases = {}

        def note(self, test, kind, text=""):
            self.cases.setdefault(test.id(), []).append((kind, str(text)))

        def startTest(self, test):
            self.note(test, "started")
            super(Result, self).startTest(test)

        def addFailure(self, test, err):
            self.note(test, "failure", err[0].__name__)
            super(Result, self).addFailure(test, err)

        def addError(self, test, err):
            self.note(test, "error", err[0].__name__)
            super(Result, self).addError(test, err)

        def addSkip(self, test, reason):
            self.note(test, "skipped", reason)
            super(Result, self).addSkip(test, reason)

        def addExpectedFailure(self, test, err):
            self.note(test, "skipped", "expected failure")
            super(Result, self).addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test):
            self.note(test, "failure", "unexpected success")
            super(Result, self).addUnexpectedSuccess(test)

        def addSubTest(self, test, subtest, err):
            if err is not None:
                self.note(test, "failure", err[0].__name__)
            super(Result, self).addSubTest(test, subtest, err)

    def main():
        sys.path.insert(0, os.getcwd())
        suite = unittest.defaultTestLoader.loadTestsFromNames(config["modules"])
        result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(suite)
        with open(config["report"], "w", encoding="utf-8") as stream:
            stream.write("<testsuite>")
            for name, notes in result.cases.items():
                owner, _, method = name.rpartition(".")
                stream.write("<testcase classname=%s name=%s>" % (quoteattr(owner), quoteattr(method)))
                for kind, text in notes:
                    if kind != "started":
                        text = "".join(char if char.isprintable() else "?" for char in text[:400])
                        stream.write("<%s message=%s/>" % (kind, quoteattr(text)))
                stream.write("</testcase>")
            stream.write("</testsuite>")
        return 0 if result.wasSuccessful() else 1

    return main


try:
    main = run_pytest() if config["runner"] == "pytest" else run_unittest()
except ImportError as error:
    print(config["absent"], error)
    sys.stdout.flush()
    os._exit(3)
os.unlink(os.path.join(here, "config.json"))
config["absent"] = ""
sys.argv[:] = ["pytest" if config["runner"] == "pytest" else "unittest"]
sys.exit(main())
"""
