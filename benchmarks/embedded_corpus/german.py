"""German-English: the synchronous grammar that writes one clause in both languages.

German holds what makes translation more than replacing words: agreement, verb-second and verb-final clauses, separable
verbs, perfects and infinitives at the end. One German sentence has one English translation here: the perfect is the
simple past (with `schon`: `have already`), `du` and `ihr` are both `you`, `sie` is told apart by its verb.
"""

import functools
from typing import NamedTuple

from . import english
from .german_words import (
    FEEL,
    HABEN,
    NOUNS,
    PAST,
    SEIN,
    SORTS,
    WEATHER,
    Adjective,
    Noun,
    Verb,
)
from .grammar import join

_NUMBERS = ["null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
_TENS = ["-", "zehn", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_SHORT = {6: "sech", 7: "sieb"}


def number(value: int) -> str:
    """A number below 100 in words, as it stands before a noun: `einundzwanzig`."""
    if value < len(_NUMBERS):
        return _NUMBERS[value]
    tens, ones = divmod(value, 10)
    if tens == 1:
        return _SHORT.get(ones, _NUMBERS[ones]) + "zehn"
    return f"{_NUMBERS[ones]}und{_TENS[tens]}" if ones else _TENS[tens]


class Determiner(NamedTuple):
    """The stem of a determiner, how it and the adjective after it are declined, and its English for one and many."""

    stem: str
    declension: str  # der, dies, ein, none
    english: str
    english_plural: str
    definite: bool


DETERMINERS: dict[str, Determiner] = {
    "der": Determiner("", "der", "the", "the", True),
    "dieser": Determiner("dies", "dies", "this", "these", True),
    "ein": Determiner("ein", "ein", "a", "", False),
    "kein": Determiner("kein", "ein", "a", "any", False),
    "mein": Determiner("mein", "ein", "my", "my", True),
    "dein": Determiner("dein", "ein", "your", "your", True),
    "sein": Determiner("sein", "ein", "his", "his", True),
    "unser": Determiner("unser", "ein", "our", "our", True),
    "": Determiner("", "none", "", "", False),
}

# nominative, accusative, dative by gender (p: plural)
ARTICLES = {"m": "der den dem", "f": "die die der", "n": "das das dem", "p": "die die den"}
_DETERMINER_ENDINGS = {
    "dies": {"m": "er en em", "f": "e e er", "n": "es es em", "p": "e e en"},
    "ein": {"m": "- en em", "f": "e e er", "n": "- - em", "p": "e e en"},
}
_WEAK = {"m": "e en en", "f": "e e en", "n": "e e en", "p": "en en en"}
_ADJECTIVE_ENDINGS = {
    "der": _WEAK,
    "dies": _WEAK,
    "ein": {"m": "er en en", "f": "e e en", "n": "es es en", "p": "en en en"},
    "none": {"m": "er en em", "f": "e e er", "n": "es es em", "p": "e e en"},
}


class Phrase(NamedTuple):
    """A noun phrase or pronoun: three German cases, two English ones, and what a clause must know of it."""

    nominative: str
    accusative: str
    dative: str
    subject: str
    object: str
    person: int
    key: str
    sort: str
    gender: str = ""  # m, f, n; p for the plural; nothing for pronouns and names
    definite: bool = True
    combinations: tuple[str, ...] = ()


@functools.cache
def noun_phrase(determiner: str, adjective: Adjective | None, noun: Noun, many: bool, count: int = 0) -> Phrase:
    """The noun phrase in all cases; a `count` stands in place of a determiner."""
    kind = DETERMINERS[determiner]
    gender = "p" if many else noun.gender
    forms = []
    for case in range(3):
        if count:
            first = number(count)
        elif kind.declension == "der":
            first = ARTICLES[gender].split()[case]
        elif kind.declension == "none":
            first = ""
        else:
            first = kind.stem + _DETERMINER_ENDINGS[kind.declension][gender].split()[case].strip("-")
        middle = adjective.stem + _ADJECTIVE_ENDINGS[kind.declension][gender].split()[case] if adjective else ""
        forms.append(join(first, middle, _noun_form(noun, many, case)))
    words = join(adjective.english if adjective else "", noun.english_plural if many else noun.english)
    article = english.number(count) if count else kind.english_plural if many or not noun.plural else kind.english
    if determiner == "ein" and not noun.plural:
        article = "a"
    text = english.with_article(words) if article == "a" else join(article, words)
    if not many and determiner == "dieser":
        text = f"this {words}"
    key = noun.english
    combinations = (f"{adjective.english}+{key}",) if adjective else ()
    return Phrase(
        forms[0], forms[1], forms[2], text, text, 5 if many else 2, key, noun.sort, gender, kind.definite, combinations
    )


def _noun_form(noun: Noun, many: bool, case: int) -> str:
    if not many:
        return noun.plural if noun.weak and case else noun.singular
    return noun.plural + "n" if case == 2 and noun.plural[-1] not in "ns" else noun.plural


def _pronouns() -> tuple[Phrase, ...]:
    forms = (
        ("ich", "mich", "mir", 0),
        ("du", "dich", "dir", 1),
        ("er", "ihn", "ihm", 2),
        ("wir", "uns", "uns", 3),
        ("ihr", "euch", "euch", 4),
        ("sie", "", "ihnen", 5),
    )
    rows = [
        Phrase(
            nom, acc, dat, english.SUBJECTS[person], english.OBJECTS[person], person, english.SUBJECTS[person], "person"
        )
        for nom, acc, dat, person in forms
    ]
    return (*rows, Phrase("sie", "", "ihr", "she", "her", 2, "she", "person"))


def bare(german: str, word: str, person: int, sort: str) -> Phrase:
    """A phrase with one form: a name, `es`, `wer`."""
    return Phrase(german, german, german, word, word, person, word, sort)


PRONOUNS = _pronouns()
OBJECT_PRONOUNS = tuple(pronoun for pronoun in PRONOUNS if pronoun.accusative)
NAMES = tuple(bare(name, name, 2, "person") for name in ("Anna", "Peter", "Maria", "Paul", "Lena", "Tom"))
ES = bare("es", "it", 2, "weather")
WER = bare("wer", "who", 2, "person")


class Tense(NamedTuple):
    """A tense or modal: a German auxiliary by person with an infinitive, or the verb's own forms; the English tense."""

    english: str
    auxiliary: tuple[str, ...] = ()
    phrase: str = ""  # `have to` and the like, before the English infinitive
    adverb: str = ""  # `gern`: what English tells with a verb
    compound: str = ""  # the auxiliary of the participle: present (`hat`) or past (`hatte`)


_MUSS = ("muss", "musst", "muss", "müssen", "müsst", "müssen")
_KANN = ("kann", "kannst", "kann", "können", "könnt", "können")
TENSES: dict[str, Tense] = {
    "present": Tense("present"),
    "past": Tense("past", compound="present"),
    "already": Tense("perfect", compound="present"),
    "pluperfect": Tense("pluperfect", compound="past"),
    "future": Tense("will", ("werde", "wirst", "wird", "werden", "werdet", "werden")),
    "can": Tense("can", _KANN),
    "must": Tense("present", _MUSS, "have to"),
    "should": Tense("should", ("soll", "sollst", "soll", "sollen", "sollt", "sollen")),
    "may": Tense("may", ("darf", "darfst", "darf", "dürfen", "dürft", "dürfen")),
    "want": Tense("present", ("möchte", "möchtest", "möchte", "möchten", "möchtet", "möchten"), "want to"),
    "could": Tense("could", ("konnte", "konntest", "konnte", "konnten", "konntet", "konnten")),
    "had to": Tense("past", ("musste", "musstest", "musste", "mussten", "musstet", "mussten"), "have to"),
    "gern": Tense("present", phrase="like to", adverb="gern"),
}


class Adverb(NamedTuple):
    """A time or frequency. A late one follows a definite object in German and stands before the verb in English."""

    german: str
    english: str
    late: bool = False


NO_ADVERB = Adverb("", "")
ALREADY = Adverb("schon", "already", True)


class Clause(NamedTuple):
    """One clause of both languages. `Text` fields are (German, English)."""

    subject: Phrase
    verb: Verb
    tense: Tense
    pronoun: tuple[str, str] = ("", "")
    indirect: tuple[str, str] = ("", "")
    direct: tuple[str, str] = ("", "")
    definite: bool = True
    adverb: Adverb = NO_ADVERB
    tail: tuple[str, str] = ("", "")  # place, goal or predicate: last before the verbs that German puts at the end
    negation: str = ""  # nicht, or kein (which the direct object shows)
    combinations: tuple[str, ...] = ()

    def _finite(self) -> tuple[str, str]:
        """(the finite verb, what German leaves for the end of a main clause)."""
        verb, tense, person = self.verb, self.tense, self.subject.person
        if tense.auxiliary:
            return tense.auxiliary[person], verb.prefix + verb.infinitive
        if not tense.compound:
            return verb.present[person], verb.prefix
        if verb.infinitive in PAST:
            return PAST[verb.infinitive][person], ""
        helper = SEIN if verb.perfect_with_sein else HABEN
        forms = helper.present if tense.compound == "present" else PAST[helper.infinitive]
        return forms[person], verb.participle

    def _middle(self) -> str:
        late = self.adverb.late or self.negation == "nicht"
        early_adverb, late_adverb = ("", self.adverb.german) if late else (self.adverb.german, "")
        late_words = join(late_adverb, "nicht" if self.negation == "nicht" else "", self.tense.adverb)
        ordered = (self.direct[0], late_words) if self.definite else (late_words, self.direct[0])
        return join(self.pronoun[0], early_adverb, self.indirect[0], *ordered, self.tail[0])

    def german(self) -> str:
        """Verb second, subject first."""
        finite, end = self._finite()
        return join(self.subject.nominative, finite, self._middle(), end)

    def german_inverted(self, first: str = "") -> str:
        """Verb second after `first`; verb first, as in a question, without it. A pronoun goes before a noun."""
        finite, end = self._finite()
        subject, pronoun = self.subject.nominative, self.pronoun[0]
        if pronoun and self.subject.gender:
            return join(first, finite, pronoun, subject, self._replace(pronoun=("", ""))._middle(), end)
        return join(first, finite, subject, self._middle(), end)

    def german_final(self, first: str) -> str:
        """A subordinate clause: its finite verb stands last and takes its prefix back."""
        finite, end = self._finite()
        last = end + finite if end and end == self.verb.prefix else join(end, finite)
        return join(first, self.subject.nominative, self._middle(), last)

    def german_infinitive(self) -> str:
        """`das Buch zu lesen`, `früh aufzustehen`."""
        prefix, infinitive = self.verb.prefix, self.verb.infinitive
        return join(self._middle(), f"{prefix}zu{infinitive}" if prefix else f"zu {infinitive}")

    def _english_verb(self) -> english.Verb:
        phrase = self.tense.phrase
        return english.before_infinitive(phrase, self.verb.english) if phrase else self.verb.english

    def _english_rest(self) -> str:
        return join(self.indirect[1], self.direct[1], self.tail[1], "" if self.adverb.late else self.adverb.english)

    def english(self) -> str:
        """A statement, or the words after `because`."""
        return english.statement(
            self.subject.subject,
            self.subject.person,
            self._english_verb(),
            self.tense.english,
            rest=self._english_rest(),
            pronoun=self.pronoun[1],
            adverb=self.adverb.english if self.adverb.late else "",
            negative=bool(self.negation),
        )

    def english_question(self, wh: str = "") -> str:
        return english.question(
            self.subject.subject,
            self.subject.person,
            self._english_verb(),
            self.tense.english,
            rest=self._english_rest(),
            wh=wh,
            pronoun=self.pronoun[1],
            adverb=self.adverb.english if self.adverb.late else "",
            negative=bool(self.negation),
        )

    def english_infinitive(self) -> str:
        return english.infinitive(self.verb.english, self._english_rest(), self.pronoun[1])

    def name(self, structure: str) -> tuple[str, ...]:
        """The combinations of this clause with `structure` around it."""
        return (*self.combinations, *self.subject.combinations, f"{self.subject.key}+{structure}")


def describing(subject: Phrase, adjective: Adjective, tense: str = "present", negation: str = "") -> Clause:
    """`Das Haus ist groß`."""
    return Clause(
        subject,
        SEIN,
        TENSES[tense],
        tail=(adjective.german, adjective.english),
        negation=negation,
        combinations=(f"{adjective.english}+{subject.key}",),
    )


_FEELINGS = (("Hunger", "m", "hungry"), ("Durst", "m", "thirsty"), ("Angst", "f", "afraid"))


def feeling(subject: Phrase, which: int, tense: str = "present", negated: bool = False) -> Clause:
    """`Ich habe keinen Hunger`: I am not hungry."""
    noun, gender, adjective = _FEELINGS[which]
    german = join(("keinen" if gender == "m" else "keine") if negated else "", noun)
    return Clause(
        subject,
        FEEL,
        TENSES[tense],
        direct=(german, adjective),
        definite=False,
        negation="kein" if negated else "",
        combinations=(f"{subject.key}+{adjective}",),
    )


_PROFESSIONS = tuple(NOUNS[name] for name in ("Arzt", "Lehrer", "Student"))
PROFESSIONALS = tuple(NOUNS[name] for name in ("Vater", "Bruder", "Onkel", "Nachbar", "Freund", "Großvater"))


def profession(subject: Phrase, which: int, tense: str = "present") -> Clause:
    """`Mein Bruder ist Arzt`: German takes no article, English does."""
    noun = _PROFESSIONS[which]
    tail = (noun.singular, english.with_article(noun.english))
    return Clause(subject, SEIN, TENSES[tense], tail=tail, combinations=(f"{subject.key}+be+{noun.english}",))


def weather(which: int, tense: str = "present") -> Clause:
    """`Es regnet`."""
    return Clause(ES, WEATHER[which], TENSES[tense])


RELATIVE = {gender: bare_forms.split() for gender, bare_forms in ARTICLES.items()}


def relative(head: Phrase, case: int = 0) -> Phrase:
    """The relative pronoun that stands for `head`: `der` as a subject, `den` as an object."""
    word = RELATIVE[head.gender][case]
    who = "who" if head.sort == "person" else "that"
    return Phrase(word, word, word, who, who, head.person, head.key, head.sort)


def comparing(subject: Phrase, adjective: Adjective, other: Phrase) -> Clause:
    """`Der Hund ist größer als die Katze`."""
    tail = (f"{adjective.comparative} als {other.nominative}", f"{adjective.english_comparative} than {other.object}")
    combinations = (f"{adjective.english}+{subject.key}", f"{subject.key}+than+{other.key}")
    return Clause(subject, SEIN, TENSES["present"], tail=tail, combinations=combinations)


FEELINGS = len(_FEELINGS)
COUNTABLE_DRINKS = tuple(NOUNS[name] for name in ("Bier", "Kaffee", "Tee"))
THINGS: tuple[Noun, ...] = SORTS["thing"] + SORTS["clothes"] + SORTS["text"] + SORTS["place"]
