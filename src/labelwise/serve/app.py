"""The application: routes with their documentation, and the tasks in the background."""

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
from labelwise.serve.hosts import AllowedHosts
from labelwise.serve.keys import KeyFile
from labelwise.serve.label_search import Match
from labelwise.serve.limits import Limits
from labelwise.serve.logs import JsonLog
from labelwise.serve.middleware import AuthMiddleware, with_headers
from labelwise.serve.model_pool import ModelPool, ServedModel
from labelwise.serve.page import add_page
from labelwise.serve.prometheus import ServerMetrics
from labelwise.serve.request_error import RequestError, error_body, overloaded
from labelwise.serve.schema import (
    ErrorAnswer,
    LabelsAnswer,
    ModelAnswer,
    ReloadAnswer,
    StatusAnswer,
    SuggestAnswer,
    first_problem,
)
from labelwise.serve.suggest import SuggestHandler

ABOUT = 'Labels for texts, with probabilities. Every error is `{"error": {"code", "message"}}` with one sentence.'
_ERRORS: dict[int | str, str] = {
    400: "The body is not JSON, or the model cannot do this.",
    401: "The request needs an API key.",
    403: "The request needs an admin key.",
    404: "There is no such model.",
    408: "The body came too slowly.",
    409: "The model cannot do this: its new version cannot be loaded, or it has no probabilities.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The server does not answer to the host of the request.",
    422: "The request has a wrong field or parameter.",
    501: "This server cannot explain suggestions.",
    503: "The server is too busy; see Retry-After.",
}
MAX_EXAMPLE = 60
"""Longest label name in characters that the page offers as a text to try."""
KEY_SECONDS = 0.5
"""Seconds between two looks at the key file while no request comes; each request with a key looks at it too."""
_Name = Annotated[str, Query(description="Which of several models; the first if not given.", max_length=200)]


@dataclass(kw_only=True)
class ServerConfig:
    """The settings of a server."""

    folders: dict[str, Path]
    """Model folders by the names of the models; the first one is the default."""
    limits: Limits = field(default_factory=Limits)
    keys: Path | None = None
    """File of API keys; None: requests need no key. It is read again when it changes; without it no key is accepted."""
    hosts: AllowedHosts = field(default_factory=AllowedHosts)
    """Names in the header Host that are accepted; all if not given."""
    examples: Sequence[str] = ()
    """Texts that the page offers to try."""
    cors: Sequence[str] = ()
    """Origins whose pages may send requests."""
    watch: float = 2.0
    """Seconds between two looks for new versions in the folders; 0 means never."""
    threads: int = 1
    """Threads of each model."""
    device: str | None = None
    """Where encoders compute; the GPU if there is one."""
    log: JsonLog = field(default_factory=JsonLog)


class Application:
    """The ASGI application with its models.

    While `draining` is true, /ready answers with 503, and answers say that the connection is closed after them.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config, self.log, self.metrics = config, config.log, ServerMetrics()
        self.draining = False
        limits = config.limits.checked()
        self.keys = KeyFile(config.keys, config.log) if config.keys else None
        how: dict[str, Any] = {"threads": config.threads, "device": config.device}
        self.models = ModelPool(config.folders, limits, self.metrics, self.log, **how)
        self.suggest_handler = SuggestHandler(self.models, limits)
        self.api = self._make_api()
        self.middleware = AuthMiddleware(
            self.api, self.suggest_handler, self.metrics, self.log, keys=self.keys, hosts=config.hosts
        )
        self._asgi: Any = self.middleware
        if config.cors:
            self._asgi = CORSMiddleware(
                self.middleware,
                allow_origins=list(config.cors),
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI asks for."""
        if scope["type"] == "http":
            send = with_headers(send, scope, lambda: self.draining)
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
            responses=_error_docs(421),
        )
        api.add_exception_handler(RequestValidationError, _validation_response)
        api.add_exception_handler(HTTPException, _framework_response)
        api.add_exception_handler(RequestError, _error_response)
        _add_routes(api, self)
        return api

    @contextlib.asynccontextmanager
    async def _lifespan(self, api: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self.log.keep_flushing())]
        if self.config.watch > 0:
            tasks.append(loop.create_task(self.models.watch(self.config.watch)))
        if self.keys is not None:
            tasks.append(loop.create_task(self._watch_keys(self.keys)))
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is not None and threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(hang_up, lambda: tasks.append(loop.create_task(self.reload())))
        versions = {name: served.current.short_id for name, served in self.models.items()}
        self.log.event("ready", models=versions, labelwise=__version__)
        yield
        self.draining = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.models.close()
        self.log.event("stopped")

    async def _watch_keys(self, keys: KeyFile) -> None:
        """Look at the key file, so that the log says at once when a key was withdrawn, until the task is cancelled."""
        while True:
            await asyncio.sleep(KEY_SECONDS)
            keys.current()

    async def reload(self) -> None:
        """Read the keys and the models again."""
        if self.keys is not None:
            self.keys.current()
        await self.models.reload_all()


def _error_docs(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The entries of the OpenAPI document for these status codes."""
    return {code: {"model": ErrorAnswer, "description": _ERRORS[code]} for code in codes}


def _add_routes(api: FastAPI, application: Application) -> None:
    models, limits, suggest_handler = application.models, application.config.limits, application.suggest_handler
    match_kinds: list[Any] = [*get_args(Match)]
    if not any(served.current.labels.by_meaning for served in models.values()):
        match_kinds.remove("meaning")  # the document does not offer it, and a request for it is answered with 400

    async def suggest(body: Any) -> Any:
        """The best labels of one text or of several, with probabilities."""
        return await suggest_handler.answer(body)

    suggest.__annotations__["body"] = suggest_handler.schema  # the schema holds the limits of this server
    api.post(
        "/v1/suggest",
        responses={**_error_docs(400, 401, 404, 408, 409, 413, 415, 422, 501, 503), 200: {"model": SuggestAnswer}},
    )(suggest)

    @api.get("/v1/labels", responses=_error_docs(400, 401, 404, 422, 503))
    async def labels(
        q: Annotated[str, Query(description="What to look for; all labels if not given.", max_length=1000)] = "",
        match: Annotated[
            Match, Query(description="How labels match.", json_schema_extra={"enum": match_kinds})
        ] = "substring",
        offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        model: _Name = "",
    ) -> LabelsAnswer:
        """Labels that begin with a string, contain it, or are similar in meaning; page by page."""
        served = models.find(model)
        found = await _search(served, q, match, limits.deadline)
        end = offset + limit
        return LabelsAnswer(
            model=served.name,
            version=served.current.short_id,
            total=len(found),
            offset=offset,
            labels=list(found[offset:end]),
            next_offset=end if end < len(found) else None,
        )

    @api.get("/v1/model", responses=_error_docs(401, 404, 422))
    async def model(model: _Name = "") -> ModelAnswer:
        """A model's card, metrics and settings."""
        served = models.find(model)
        current = served.current
        validation = current.model.report_.validation
        return ModelAnswer(
            model=served.name,
            version=current.short_id,
            loaded=current.loaded,
            kind=current.model.kind,
            title=current.model.title(),
            n_labels=len(current.model.labels_),
            calibrated=current.model.calibrator_ is not None,
            searchable_by_meaning=current.labels.by_meaning,
            facts=dict(current.model.facts()),
            metrics=None if validation is None else validation.to_dict(),
            config=current.config,
            card=current.card,
            models=list(models),
            examples=list(application.config.examples) or _label_examples(current.model.labels_),
            limits=asdict(limits),
        )

    @api.post("/v1/reload", responses=_error_docs(401, 403, 404, 409, 422))
    async def reload(model: _Name = "") -> ReloadAnswer:
        """Load the model's folder again if it has changed. No request is lost. Needs an admin key."""
        served = models.find(model)
        changed = await models.reload(served)
        return ReloadAnswer(model=served.name, version=served.current.short_id, changed=changed)

    @api.get("/health")
    async def health() -> StatusAnswer:
        """Whether the process is alive."""
        return StatusAnswer(status="alive")

    @api.get("/ready", responses=_error_docs(503))
    async def ready() -> StatusAnswer:
        """Whether the server accepts requests: it does not while it drains."""
        if application.draining:
            raise overloaded("the server is about to stop; send requests to another one.", "draining")
        return StatusAnswer(status="ready")

    @api.get("/metrics", response_class=PlainTextResponse, responses=_error_docs(401))
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        for name, served in models.items():
            application.metrics.waiting.set(name, to=served.batcher.waiting)
        return PlainTextResponse(application.metrics.text(), media_type="text/plain; version=0.0.4")

    add_page(api)


def _label_examples(labels: Sequence[str], number: int = 3) -> list[str]:
    """Some names of labels as texts to try, where no texts are given: none of numbers, none too long for a button."""
    named = [label for label in labels if 3 <= len(label) <= MAX_EXAMPLE and any(map(str.isalpha, label))]
    return [named[len(named) * place // (number + 1)] for place in range(1, number + 1)] if len(named) > number else []


async def _search(served: ServedModel, query: str, match: Match, seconds: float) -> Sequence[str]:
    """The labels that match the query, or an error after so long that the client should try again."""
    search = served.current.labels
    if match == "meaning" and not search.by_meaning:
        raise RequestError(
            400, "no_meaning", f"the model {served.name} cannot search labels by meaning; use prefix or substring."
        )
    work = asyncio.ensure_future(asyncio.to_thread(search.find, query, match))
    try:
        return await asyncio.wait_for(asyncio.shield(work), seconds)
    except TimeoutError:  # the first search by meaning embeds every label; the thread continues with that
        raise overloaded("the labels are being prepared; try again in ten seconds.", "preparing", 10) from None


async def _validation_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _error_response(request, first_problem(error.errors()))


async def _framework_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {
        404: ("not_found", "this path does not exist; /openapi.json lists the paths."),
        405: ("wrong_method", "this path does not accept the method; /openapi.json lists the methods of each path."),
    }
    code, message = known.get(error.status_code, ("bad_request", f"{error.detail}."))
    return Response(error_body(code, message), error.status_code, error.headers, "application/json")


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Response(error.body(), error.status, error.headers, "application/json")
