"""Requests and answers of our own API (`v1.py`); its description is made from them too."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import from_json

from dragoman.serve.corrector import Scope
from dragoman.serve.explainer import MAX_BEGIN
from dragoman.serve.requests import Detected
from dragoman.serve.service import AUTO
from dragoman.text.glossary import Glossary

MAX_TERMS = 1000
"""Terms of a glossary that comes with a request."""


def _terms_of(value: Any) -> Any:
    """Terms that come as text: JSON, or what a file of terms holds."""
    if not isinstance(value, str) or not value.strip():
        return value or {}
    if value.lstrip().startswith(("{", "[")):
        return from_json(value)
    return Glossary.of_text(value).targets


def _split_of(value: Any) -> Any:
    return {"auto": None, "always": True, "never": False}.get(value, value) if isinstance(value, str) else value


SENTENCE = "Ich möchte ein Bier."
Filled = Annotated[str, Field(pattern=r"\S")]
Terms = Annotated[
    dict[Filled, Filled], BeforeValidator(_terms_of), Field(max_length=MAX_TERMS, examples=[{"Bier": "ale"}])
]
Texts = Annotated[str | list[str], Field(validation_alias=AliasChoices("text", "texts"), examples=[SENTENCE])]
Text = Annotated[str, Field(examples=[SENTENCE])]
Code = Annotated[str, Field(examples=["de"])]
TargetCode = Annotated[str, Field(min_length=1, examples=["en"])]
Links = Annotated[list[tuple[int, int, int, int]], Field(examples=[[[0, 21, 0, 20]]])]
"""Characters from and to in the source, and in the translation."""


class Pair(BaseModel):
    source: Code = AUTO
    target: TargetCode


class Details(BaseModel):
    """Details of a translation that are told if they are asked for."""

    alignments: bool = False
    warnings: bool = False
    confidence: bool = False


class StreamRequest(Pair):
    text: Text = ""
    format: Literal["text", "html", "xml"] = "text"
    alternatives: int = Field(0, ge=0)
    glossary: Terms = Field({})
    prefix: str = ""
    memory: bool = True
    split: Annotated[bool | None, BeforeValidator(_split_of)] = None
    beam_size: int | None = Field(None, ge=1, le=16)


class TranslateRequest(StreamRequest, Details):
    text: Texts  # type: ignore[assignment]


class WordsRequest(Pair):
    text: Text = ""
    prefix: str = Field("", examples=["I"])
    count: int = Field(6, ge=1)


class ExplainRequest(Pair):
    text: Text = ""
    beam_size: int | None = Field(None, ge=1, le=16)


class WayRequest(Pair):
    text: Text = ""
    begin: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=MAX_BEGIN, examples=[[4]])


class DetectRequest(BaseModel):
    text: Texts


class Correction(BaseModel):
    source: Code
    target: TargetCode
    text: Annotated[Filled, Field(examples=["Bier"])]
    translation: Annotated[Filled, Field(examples=["beer"])]
    scope: Scope | None = Field(None, description="For your own texts, or for everybody's.")


class ForgetRequest(Pair):
    text: Text = ""


class CorrectionsQuery(BaseModel):
    source: str = ""
    target: str = ""
    q: str = Field("", description="A part of the text or of its translation, in any case.")
    state: Literal["", "own", "pending", "rejected", "shared"] = ""
    format: Literal["", "json", "tmx"] = ""
    offset: int = Field(0, ge=0, le=10**9)
    limit: int = Field(50, ge=1, le=500)


class GlossaryRequest(BaseModel):
    source: str = Field("", description="The language of the terms, for files that hold several.")
    target: str = Field("", description="The language of their translations.")


class DocumentRequest(Pair):
    glossary: Terms = Field({})
    columns: str = Field("", description="Of a .csv or .tsv: the columns to translate, by heading or number.")
    bilingual: bool = Field(False, description="Each translation below its source, in formats that can have it.")


class KeyOfDocument(BaseModel):
    key: str = ""


class Part(BaseModel):
    """The translation of a part of a text."""

    text: str = Field(examples=["I would like a beer."])
    source: Code
    detected: Detected | None = None
    alternatives: list[str]
    notes: list[dict[str, Any]]
    sentences: Links


class Translation(Part):
    target: TargetCode
    score: float
    log_prob: float
    alignments: Links | None = None
    confidence: list[tuple[int, int, float]] | None = None
    """Characters from and to of each word, and its confidence."""
    warnings: list[dict[str, Any]] | None = None
    memory: list[dict[str, Any]] | None = None
    """Corrections of similar texts."""


class Translations(BaseModel):
    translations: list[Translation]
