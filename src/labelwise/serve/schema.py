"""What requests and answers look like: checked by pydantic, shown in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from labelwise.serve.limits import Limits
from labelwise.serve.refusal import RequestRefused

_EXAMPLES: list[Any] = [
    {"text": "red cotton play mat", "top_k": 3},
    {"texts": ["red cotton play mat", "wall mirror"], "top_k": 5, "min_probability": 0.2},
]


class Ask(BaseModel):
    """One text, or several, that labels are wanted for."""

    model_config = ConfigDict(strict=True, extra="forbid", title="SuggestRequest")
    text: str = ""
    texts: list[str] = Field(default_factory=list)
    top_k: int = 10
    min_probability: float = 0.0
    explain: bool = False
    model: str | None = None

    def documents(self) -> list[str]:
        """The texts, however they were given."""
        one, many = "text" in self.model_fields_set, "texts" in self.model_fields_set
        if one == many:
            which = "both text and texts" if one else "neither text nor texts"
            raise RequestRefused(422, "invalid_request", f"the body has {which}; give one text, or a list of texts.")
        return [self.text] if one else self.texts


def ask_within(limits: Limits) -> type[Ask]:
    """The schema of requests with these limits in it."""
    string = Annotated[str, Field(max_length=limits.max_characters)]

    class SuggestRequest(Ask):
        """One text, or several, that labels are wanted for: either `text` or `texts`."""

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
            default=10, ge=1, le=limits.max_top_k, description="Most labels for each text."
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
            description="Tell why: contributions of words, the path to the label. Of each text the best labels are "
            f"explained, {limits.max_explained} in all.",
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
    """In JSON 5.0 is an integer as well."""
    return int(value) if type(value) is float and value.is_integer() else value


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class Suggestion(BaseModel):
    """A label, with its probability if the model is calibrated, otherwise with its score."""

    label: str
    probability: float | None = None
    score: float | None = None


class Result(BaseModel):
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
    results: list[Result]


class LabelsAnswer(BaseModel):
    """A page of the labels that were found."""

    model: str
    version: str
    total: int
    offset: int
    labels: list[str]
    next_offset: int | None = Field(description="Where the next page begins; null on the last one.")


class ModelAnswer(BaseModel):
    """What a model is."""

    model: str
    version: str
    loaded: str
    kind: str
    title: str
    n_labels: int
    calibrated: bool
    searchable_by_meaning: bool
    facts: dict[str, str]
    metrics: dict[str, Any] | None = Field(description="As measured on held-out documents when it was trained.")
    config: dict[str, Any]
    card: str = Field(description="The model card, in Markdown.")
    models: list[str] = Field(description="All models of this server; the first is the default.")
    limits: dict[str, float]


class Status(BaseModel):
    """How the server does."""

    status: str


class ReloadAnswer(BaseModel):
    """The version that answers from now on."""

    model: str
    version: str
    changed: bool


class ErrorDetail(BaseModel):
    """A code for programs, a sentence for people."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """The shape of every error."""

    error: ErrorDetail


def parse(schema: type[Ask], body: bytes) -> Ask:
    """The request in a body; what is wrong with it is told in one sentence."""
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise refusal_of(error.errors(include_url=False, include_context=True, include_input=False)) from None


def refusal_of(errors: Any) -> RequestRefused:
    """The first of pydantic's findings as one sentence, without what the client sent."""
    first = errors[0]
    place = [part for part in first["loc"] if part not in ("body", "query")]
    where = str(place[0]) if place else "the body"
    where += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[1:])
    where = where if len(where) <= 80 else where[:77] + "..."
    kind, context = first["type"], first.get("ctx", {})
    if kind == "json_invalid":
        return RequestRefused(400, "invalid_json", f"the body is not valid JSON: {context.get('error', first['msg'])}.")
    if kind == "extra_forbidden":
        known = ", ".join(Ask.model_fields)
        return RequestRefused(422, "invalid_request", f"{where!r} is no field of a request; there are: {known}.")
    message = first["msg"][:1].lower() + first["msg"][1:]
    return RequestRefused(422, "invalid_request", f"{where}: {message.rstrip('.')}.".replace("\n", " "))
