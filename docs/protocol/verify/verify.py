"""Recomputes the transcript vectors of both engines from the specification.

    python3 docs/protocol/verify/verify.py [FOLDER]

FOLDER has the vectors; without it, packages/threshold/testing/vectors. Prints one line for each
check. Exits with status 1 at the first check that fails. Needs Python 3.8 or newer and nothing else.
"""

import json
import pathlib
import sys

# The next modules are in this folder; no folder of bytecode is created beside them.
sys.dont_write_bytecode = True

import dkls23
import dkls23_sign
import frost
from wire import Failed, Report

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "packages/threshold/testing/vectors"


def verify(folder, report):
    def read(name, engine, run):
        report.run = name
        data = json.loads((folder / f"{name}.json").read_text())
        report.check(
            "the file has layout 1, and names engine and run",
            (data["layout"], data["engine"], data["run"]) == (1, engine, run)
            and (data["context"]["engine"], data["context"]["protocol"]) == (engine, run),
        )
        return data

    dkls, ed25519 = "dkls23-secp256k1", "frost-ed25519"
    keys = dkls23.keygen(read("dkls23-keygen", dkls, "keygen"), report)
    dkls23_sign.sign(read("dkls23-sign", dkls, "sign"), report, keys)
    dkls23.refresh(read("dkls23-refresh", dkls, "refresh"), report, keys[0])
    result = frost.keygen(read("frost-keygen", ed25519, "keygen"), report)
    frost.sign(read("frost-sign", ed25519, "sign"), report, result)
    frost.refresh(read("frost-refresh", ed25519, "refresh"), report, result)


def main():
    report = Report()
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    try:
        verify(folder, report)
    except Failed as failure:
        print(f"FAILED {failure}")
        return 1
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        print(f"FAILED {report.run}: the file is malformed: {type(error).__name__}: {error}")
        return 1
    print(f"{report.count} checks hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
