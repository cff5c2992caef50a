"""The application: routes, their documentation, and what runs beside them."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_args

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from labelwise import __version__
from labelwise.serve.gate import AuthMiddleware
from labelwise.serve.keys import Keyring
from labelwise.serve.label_search import Match
from labelwise.serve.limits import Limits
from labelwise.serve.logs import Log
from labelwise.serve.model_pool import Models, Served
from labelwise.serve.page import add_page
from labelwise.serve.prometheus import Metrics
from labelwise.serve.refusal import RequestRefused, error_body, overloaded
from labelwise.serve.schema import (
    ErrorAnswer,
    LabelsAnswer,
    ModelAnswer,
    ReloadAnswer,
    Status,
    SuggestAnswer,
    refusal_of,
)
from labelwise.serve.suggest import SuggestHandler

ABOUT = 'Labels for texts, with probabilities. Every error is `{"error": {"code", "message"}}` with one sentence.'
_ERRORS: dict[int | str, str] = {
    400: "The body is not JSON, or the model cannot do this.",
    401: "An API key is needed.",
    403: "An admin key is needed.",
    404: "There is no such model.",
    408: "The body came too slowly.",
    409: "It cannot be done with this model: its new version cannot be loaded, or it has no probabilities.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "Something about the request is wrong.",
    501: "This server cannot explain.",
    503: "Too busy; see Retry-After.",
}
_Name = Annotated[str, Query(description="Which of several models; the first if not given.", max_length=200)]


@dataclass(kw_only=True)
class Setup:
    """What a server is made of."""

    folders: dict[str, Path]
    limits: Limits = field(default_factory=Limits)
    keys: Path | None = None
    cors: Sequence[str] = ()
    watch: float = 2.0
    threads: int = 1
    log: Log = field(default_factory=Log)


class Application:
    """The ASGI application with its models; `draining` turns /ready to 503."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.log, self.metrics = setup, setup.log, Metrics()
        self.draining = False
        limits = setup.limits.checked()
        keys = Keyring.read(setup.keys) if setup.keys else None
        self.models = Models(setup.folders, limits, self.metrics, self.log, threads=setup.threads)
        self.desk = SuggestHandler(self.models, limits)
        self.api = self._make_api()
        self.gate = AuthMiddleware(self.api, self.desk, self.metrics, self.log, keys)
        self._asgi: Any = self.gate
        if setup.cors:
            self._asgi = CORSMiddleware(
                self.gate,
                allow_origins=list(setup.cors),
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        await self._asgi(scope, receive, send)

    def _make_api(self) -> FastAPI:
        api = FastAPI(
            title="labelwise",
            version=__version__,
            description=ABOUT,
            lifespan=self._lifespan,
            docs_url=None,  # FastAPI's pages load scripts from elsewhere
            redoc_url=None,
            redirect_slashes=False,
        )
        api.add_exception_handler(RequestValidationError, _invalid)
        api.add_exception_handler(HTTPException, _http)
        api.add_exception_handler(RequestRefused, _refused)
        _add_routes(api, self)
        return api

    @contextlib.asynccontextmanager
    async def _lifespan(self, api: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self.log.keep_flushing())]
        if self.setup.watch > 0:
            tasks.append(loop.create_task(self.models.watch(self.setup.watch)))
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is not None and threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(hang_up, lambda: tasks.append(loop.create_task(self.reload())))
        versions = {name: served.now.version for name, served in self.models.items()}
        self.log.event("ready", models=versions, labelwise=__version__)
        yield
        self.draining = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.models.close()
        self.log.event("stopped")

    async def reload(self) -> None:
        """Read keys and models again."""
        if self.setup.keys:
            try:
                self.gate.keys = Keyring.read(self.setup.keys)
            except (OSError, ValueError) as error:
                self.log.event("keys_failed", reason=str(error))
        await self.models.reload_all()


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ErrorAnswer, "description": _ERRORS[code]} for code in codes}


def _add_routes(api: FastAPI, application: Application) -> None:
    models, limits, desk = application.models, application.setup.limits, application.desk
    ways: list[Any] = [*get_args(Match)]
    if not any(served.now.labels.by_meaning for served in models.values()):
        ways.remove("meaning")  # answered with 400 then, and not offered

    async def suggest(ask: Any) -> Any:
        """The best labels of one text or of several, with probabilities."""
        return await desk.answer(ask)

    suggest.__annotations__["ask"] = desk.schema  # with this server's limits in it
    api.post(
        "/v1/suggest",
        responses={**_errors(400, 401, 404, 408, 409, 413, 415, 422, 501, 503), 200: {"model": SuggestAnswer}},
    )(suggest)

    @api.get("/v1/labels", responses=_errors(400, 401, 404, 422, 503))
    async def labels(
        q: Annotated[str, Query(description="What to look for; all labels if not given.", max_length=1000)] = "",
        match: Annotated[Match, Query(description="How.", json_schema_extra={"enum": ways})] = "substring",
        offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        model: _Name = "",
    ) -> LabelsAnswer:
        """Labels that begin with a string, contain it, or are near it in meaning; page by page."""
        served = models.find(model)
        found = await _search(served, q, match, limits.deadline)
        end = offset + limit
        return LabelsAnswer(
            model=served.name,
            version=served.now.version,
            total=len(found),
            offset=offset,
            labels=list(found[offset:end]),
            next_offset=end if end < len(found) else None,
        )

    @api.get("/v1/model", responses=_errors(401, 404, 422))
    async def model(model: _Name = "") -> ModelAnswer:
        """What a model is: its card, its figures, its settings."""
        served = models.find(model)
        now = served.now
        validation = now.model.report_.validation
        return ModelAnswer(
            model=served.name,
            version=now.version,
            loaded=now.loaded,
            kind=now.model.kind,
            title=now.model.title(),
            n_labels=len(now.model.labels_),
            calibrated=now.model.calibrator_ is not None,
            searchable_by_meaning=now.labels.by_meaning,
            facts=dict(now.model.facts()),
            metrics=None if validation is None else validation.to_dict(),
            config=now.config,
            card=now.card,
            models=list(models),
            limits=asdict(limits),
        )

    @api.post("/v1/reload", responses=_errors(401, 403, 404, 409, 422))
    async def reload(model: _Name = "") -> ReloadAnswer:
        """Load the model's folder again if it changed, without dropping a request. Needs an admin key."""
        served = models.find(model)
        changed = await models.reload(served)
        return ReloadAnswer(model=served.name, version=served.now.version, changed=changed)

    @api.get("/health")
    async def health() -> Status:
        """Whether the process lives."""
        return Status(status="alive")

    @api.get("/ready", responses=_errors(503))
    async def ready() -> Status:
        """Whether requests are welcome: not while the server drains."""
        if application.draining:
            raise overloaded("the server is about to stop; ask another one.", "draining")
        return Status(status="ready")

    @api.get("/metrics", response_class=PlainTextResponse, responses=_errors(401))
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        for name, served in models.items():
            application.metrics.waiting.set(name, to=served.batcher.waiting)
        return PlainTextResponse(application.metrics.text(), media_type="text/plain; version=0.0.4")

    add_page(api)


async def _search(served: Served, query: str, match: Match, seconds: float) -> Sequence[str]:
    search = served.now.labels
    if match == "meaning" and not search.by_meaning:
        raise RequestRefused(
            400, "no_meaning", f"the model {served.name} has no encoder to search by meaning; use prefix or substring."
        )
    work = asyncio.ensure_future(asyncio.to_thread(search.find, query, match))
    try:
        return await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:  # the first search by meaning embeds every label, and goes on doing so
        raise overloaded("the labels are being prepared; try again in ten seconds.", "preparing", 10) from None


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _refused(request, refusal_of(error.errors()))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: ("not_found", "there is nothing here; see /openapi.json for what there is.")}
    code, message = known.get(error.status_code, ("bad_request", f"{error.detail}."))
    if error.status_code == 405:
        code, message = "wrong_method", "this cannot be asked in that way; see /openapi.json."
    return Response(error_body(code, message), error.status_code, error.headers, "application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return Response(error.body(), error.status, error.headers, "application/json")
