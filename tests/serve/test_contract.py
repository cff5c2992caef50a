"""schemathesis reads the OpenAPI document and looks for answers that it does not allow."""

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_openapi_document_is_kept(client):
    from hypothesis import HealthCheck, Phase, settings

    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        def check(case):
            nonlocal tried
            tried += 1
            case.call_and_validate()

        for mode in schemathesis.GenerationMode:
            cases = operation.as_strategy(generation_mode=mode)
            settings(
                max_examples=100,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )(__import__("hypothesis").given(cases)(check))()
    assert tried > 200
