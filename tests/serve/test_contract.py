"""schemathesis reads the OpenAPI document and looks for answers that it does not allow."""

import contextlib

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("calibrated", [True, False])
def test_answers_match_the_openapi_document(serve, folder, plain, calibrated):
    # Small texts, so that what is too long is refused for that and not as too large a body, which it would not know.
    client = serve({"shop": folder if calibrated else plain}, wait_ms=0, max_characters=1000, max_texts=20)
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if not calibrated and operation.path != "/v1/suggest":
            continue  # it says the same of both

        def check(case):
            nonlocal tried
            tried += 1
            case.call_and_validate()

        run = settings(max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        for mode in schemathesis.GenerationMode:
            with contextlib.suppress(Unsatisfiable):  # nothing is wrong where nothing can be said
                run(given(operation.as_strategy(generation_mode=mode))(check))()
    assert tried > (200 if calibrated else 50)
