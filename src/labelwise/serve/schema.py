"""Schemas of requests and answers, checked by pydantic and shown in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from labelwise.serve.limits import Limits
from labelwise.serve.request_error import RequestError

_EXAMPLES: list[Any] = [
    {"text": "red cotton play mat", "top_k": 3},
    {"texts": ["red cotton play mat", "wall mirror"], "top_k": 5, "min_probability": 0.2},
]


class BaseRequest(BaseModel):
    """A request for the labels of one text or of several, without limits."""

    model_config = ConfigDict(strict=True, extra="forbid", title="SuggestRequest")
    text: str = ""
    texts: list[str] = Field(default_factory=list)
    top_k: int = 10
    min_probability: float = 0.0
    explain: bool = False
    model: str | None = None

    def documents(self) -> list[str]:
        """The texts of the request, from `text` or `texts`."""
        one, many = "text" in self.model_fields_set, "texts" in self.model_fields_set
        if one == many:
            which = "both text and texts" if one else "neither text nor texts"
            raise RequestError(422, "invalid_request", f"the body has {which}; give one text, or a list of texts.")
        return [self.text] if one else self.texts


def suggest_request_schema(limits: Limits) -> type[BaseRequest]:
    """The schema of requests within these limits."""
    string = Annotated[str, Field(max_length=limits.max_characters)]

    class SuggestRequest(BaseRequest):
        """A request for the labels of one text (`text`) or of several (`texts`)."""

        model_config = ConfigDict(
            json_schema_extra={
                "examples": _EXAMPLES,
                "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            },
        )
        text: string = Field(default="", description="One text.", json_schema_extra=_without_default)
        texts: list[string] = Field(
            default_factory=list,
            min_length=1,
            max_length=limits.max_texts,
            description="Several texts; the results are in their order.",
        )
        top_k: Annotated[int, BeforeValidator(_whole)] = Field(
            default=10, ge=1, le=limits.max_top_k, description="Largest number of labels for each text."
        )
        min_probability: float = Field(
            default=0.0,
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="Leave out labels below this probability; a text may then have none.",
        )
        explain: bool = Field(
            default=False,
            description="Also return explanations: contributions of words, the path to the label. The best labels of "
            f"each text are explained, {limits.max_explained} in all.",
        )
        model: str = Field(
            default="",
            max_length=200,
            description="Which of several models; the first if not given.",
            json_schema_extra=_without_default,
        )

    SuggestRequest.model_rebuild(_types_namespace={"string": string})
    return SuggestRequest


def _whole(value: Any) -> Any:
    """The value as an integer if it is a whole number: JSON does not distinguish 5.0 from 5."""
    return int(value) if type(value) is float and value.is_integer() else value


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class Suggestion(BaseModel):
    """A label, with its probability if the model is calibrated, otherwise with its score."""

    label: str
    probability: float | None = None
    score: float | None = None


class TextResult(BaseModel):
    """The labels of one text, best first."""

    suggestions: list[Suggestion]
    explanations: list[dict[str, Any]] | None = None


class SuggestAnswer(BaseModel):
    """The labels of every text, in the order of the texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "my-model",
                    "version": "1f0c9a77d2b4",
                    "results": [{"suggestions": [{"label": "play mat", "probability": 0.93}]}],
                }
            ]
        }
    )
    model: str
    version: str
    results: list[TextResult]


class LabelsAnswer(BaseModel):
    """A page of the labels that match a search."""

    model: str
    version: str
    total: int
    offset: int
    labels: list[str]
    next_offset: int | None = Field(description="Where the next page begins; null on the last one.")


class ModelAnswer(BaseModel):
    """The description of a model."""

    model: str
    version: str
    loaded: str
    kind: str
    title: str
    n_labels: int
    calibrated: bool
    searchable_by_meaning: bool
    facts: dict[str, str]
    metrics: dict[str, Any] | None = Field(description="Measured on held-out documents when the model was trained.")
    config: dict[str, Any]
    card: str = Field(description="The model card, in Markdown.")
    models: list[str] = Field(description="All models of this server; the first is the default.")
    examples: list[str] = Field(description="Texts to try: those of labelwise serve --examples, else names of labels.")
    limits: dict[str, float]


class StatusAnswer(BaseModel):
    """The state of the server."""

    status: str


class ReloadAnswer(BaseModel):
    """The version that is served after a reload."""

    model: str
    version: str
    changed: bool


class ErrorDetail(BaseModel):
    """A code for programs, a sentence for people."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """The body of every error."""

    error: ErrorDetail


def parse_request(schema: type[BaseRequest], body: bytes) -> BaseRequest:
    """The request in a body; a `RequestError` with one sentence if it is malformed."""
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise first_problem(error.errors(include_url=False, include_context=True, include_input=False)) from None


def first_problem(errors: Any) -> RequestError:
    """The first of pydantic's errors as one sentence, which quotes nothing that the client sent."""
    first = errors[0]
    place = [part for part in first["loc"] if part not in ("body", "query")]
    where = str(place[0]) if place else "the body"
    where += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[1:])
    where = where if len(where) <= 80 else where[:77] + "..."
    kind, context = first["type"], first.get("ctx", {})
    if kind == "json_invalid":
        return RequestError(400, "invalid_json", f"the body is not valid JSON: {context.get('error', first['msg'])}.")
    if kind == "extra_forbidden":
        known = ", ".join(BaseRequest.model_fields)
        return RequestError(422, "invalid_request", f"{where!r} is not a field of a request; there are: {known}.")
    message = first["msg"][:1].lower() + first["msg"][1:]
    return RequestError(422, "invalid_request", f"{where}: {message.rstrip('.')}.".replace("\n", " "))
