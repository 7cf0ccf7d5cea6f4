"""Chinese-English: the synchronous grammar that writes one clause in both languages.

Chinese says neither article nor number nor tense the English way: measure words count (三本书), a bare noun is plural
as an object and definite after 把, 了 and 没 tell the past, 的 joins whatever stands before its noun.
"""

import functools
from typing import NamedTuple

from . import english
from .chinese_words import Adjective, Noun, Verb
from .grammar import join

_DIGITS = "零一二三四五六七八九"


def number(value: int, counting: bool = False) -> str:
    """A number below 100: 二十一; before a measure word, two is 两."""
    if counting and value == 2:
        return "两"
    tens, ones = divmod(value, 10)
    return ("" if tens == 0 else "十" if tens == 1 else _DIGITS[tens] + "十") + (
        "" if tens and not ones else _DIGITS[ones]
    )


class Phrase(NamedTuple):
    """A noun phrase or pronoun in both languages."""

    chinese: str
    subject: str
    object: str
    person: int
    key: str
    sort: str
    bare: bool = False
    combinations: tuple[str, ...] = ()


PRONOUNS = (
    Phrase("我", "I", "me", 0, "I", "person"),
    Phrase("你", "you", "you", 1, "you", "person"),
    Phrase("他", "he", "him", 2, "he", "person"),
    Phrase("她", "she", "her", 2, "she", "person"),
    Phrase("我们", "we", "us", 3, "we", "person"),
    Phrase("你们", "you", "you", 4, "you", "person"),
    Phrase("他们", "they", "them", 5, "they", "person"),
)
NAMES = tuple(
    Phrase(chinese, name, name, 2, name, "person")
    for chinese, name in (("小明", "Xiaoming"), ("小红", "Xiaohong"), ("王先生", "Mr. Wang"), ("李老师", "Teacher Li"))
)
OWNERS = {
    "我": "my",
    "你": "your",
    "他": "his",
    "她": "her",
    "我们": "our",
    "他们": "their",
    "小明": "Xiaoming's",
    "小红": "Xiaohong's",
}
WHO = Phrase("谁", "who", "whom", 2, "who", "person")


@functools.cache
def noun_phrase(determiner: str, adjective: Adjective | None, noun: Noun, count: int = 0) -> Phrase:
    """`determiner`: 这 那 这些 那些, an owner, `the` (bare but definite) or nothing; a `count` takes a measure word."""
    before = adjective.before_noun if adjective else ""
    word = join(adjective.english if adjective else "", noun.english)
    words = join(adjective.english if adjective else "", noun.plural)
    if noun.container:
        word, words = f"{noun.container} of {word}", f"{english.plural(noun.container)} of {word}"
    person = 2
    if determiner in OWNERS:
        chinese = determiner + ("" if noun.sort == "kin" else "的") + before + noun.chinese
        text = f"{OWNERS[determiner]} {join(adjective.english if adjective else '', noun.english)}"
    elif determiner in ("这", "那"):
        chinese = determiner + noun.measure + before + noun.chinese
        text = f"{'this' if determiner == '这' else 'that'} {word}"
    elif determiner in ("这些", "那些"):
        chinese, text, person = (
            determiner + before + noun.chinese,
            f"{'these' if determiner == '这些' else 'those'} {words}",
            5,
        )
    elif count == 1:
        chinese, text = "一" + noun.measure + before + noun.chinese, english.with_article(word)
    elif count:
        chinese, person = number(count, True) + noun.measure + before + noun.chinese, 5
        text = f"{english.number(count)} {words}"
    else:
        chinese = before + noun.chinese
        uncounted = join(adjective.english if adjective else "", noun.plural or noun.english)
        one = join(adjective.english if adjective else "", noun.english)
        text = f"the {one}" if determiner == "the" else uncounted
    combinations = (f"{adjective.english}+{noun.english}",) if adjective else ()
    bare = not determiner and not count
    return Phrase(chinese, text, text, person, noun.english, noun.sort, bare, combinations)


class Mood(NamedTuple):
    """A modal verb, or a tense: the Chinese word before the verb, and what English does."""

    chinese: str
    english: str
    phrase: str = ""


MOODS: dict[str, Mood] = {
    "present": Mood("", "present"),
    "past": Mood("", "past"),
    "will": Mood("会", "will"),
    "want": Mood("想", "present", "want to"),
    "like": Mood("喜欢", "present", "like to"),
    "can": Mood("能", "can"),
    "may": Mood("可以", "may"),
    "should": Mood("应该", "should"),
    "must": Mood("必须", "present", "have to"),
}


class Clause(NamedTuple):
    """One clause of both languages. Pairs of texts are (Chinese, English)."""

    subject: Phrase
    verb: Verb
    mood: Mood
    negative: bool = False
    time: tuple[str, str] = ("", "")
    often: tuple[str, str] = ("", "")  # stands before the verb in English too
    place: tuple[str, str] = ("", "")
    receiver: tuple[str, str] = ("", "")
    object: tuple[str, str] = ("", "")
    bare: bool = False  # the object has neither number nor determiner
    purpose: tuple[str, str] = ("", "")
    combinations: tuple[str, ...] = ()

    def chinese(self, *, first: str = "", wh: str = "", asked: bool = False) -> str:
        """Subject, time, negation, modal, place, verb, 了, objects; `wh` stands where a time would."""
        past = self.mood.english == "past" and not self.mood.phrase
        not_ = "没" if past else "不"
        negation = not_ if self.negative else ""
        if self.verb.chinese == "有" and self.negative:
            negation = "没"
        done = "了" if past and not self.negative else ""
        last = done if asked and self.bare else ""
        before = first + self.subject.chinese + self.time[0] + wh + self.often[0] + negation + self.mood.chinese
        verb = self.verb.chinese + ("" if last else done)
        return before + self.place[0] + verb + self.receiver[0] + self.object[0] + self.purpose[0] + last

    def chinese_with_ba(self) -> str:
        """The object before the verb: 他把书卖了."""
        before = self.subject.chinese + self.time[0] + ("没" if self.negative else "")
        return f"{before}把{self.object[0]}{self.verb.chinese}{'' if self.negative else '了'}"

    def _english_verb(self) -> english.Verb:
        phrase = self.mood.phrase
        return english.before_infinitive(phrase, self.verb.english) if phrase else self.verb.english

    def _rest(self) -> str:
        return join(self.receiver[1], self.object[1], self.place[1], self.purpose[1], self.time[1])

    def english(self) -> str:
        return english.statement(
            self.subject.subject,
            self.subject.person,
            self._english_verb(),
            self.mood.english,
            rest=self._rest(),
            adverb=self.often[1],
            negative=self.negative,
        )

    def english_question(self, wh: str = "") -> str:
        return english.question(
            self.subject.subject,
            self.subject.person,
            self._english_verb(),
            self.mood.english,
            rest=self._rest(),
            wh=wh,
            adverb=self.often[1],
            negative=self.negative,
        )

    def name(self, structure: str) -> tuple[str, ...]:
        """The combinations of this clause with `structure` around it."""
        return (*self.combinations, *self.subject.combinations, f"{self.subject.key}+{structure}")
