"""Chinese-English: what a clause says: its subject, verb, mood, objects, time and place."""

from collections.abc import Sequence

from . import english
from .chinese import MOODS, NAMES, OWNERS, PRONOUNS, Clause, Phrase, noun_phrase, number
from .chinese_words import (
    BEFORE_NOUN,
    BY_CHINESE,
    GIVING,
    GO,
    HOME,
    INTRANSITIVE,
    OWN,
    PLACES,
    SORTS,
    TRANSITIVE,
    Noun,
    Verb,
)
from .grammar import Chooser, spread

ANY_MOOD = spread(
    {"present": 32, "past": 28, "will": 9, "want": 8, "like": 4, "can": 6, "may": 3, "should": 5, "must": 4}
)
SIMPLE = spread({"present": 6, "past": 3, "want": 1, "can": 1})
UNTOLD = spread({"present": 6, "want": 1, "can": 1})
TOLD = spread({"present": 3, "past": 2})
_TODAY, _NOW, _EVERY_DAY = ("今天", "today"), ("现在", "now"), ("每天", "every day")
_DAYTIMES = (
    ("晚上", "in the evening"),
    ("早上", "in the morning"),
    ("星期一", "on Monday"),
    ("星期六", "on Saturday"),
)
EARLIER = (("昨天", "yesterday"), ("上个星期", "last week"))
_LATER = (("明天", "tomorrow"), ("下个星期", "next week"))
_TIMES = {
    "present": (_TODAY, _NOW, _EVERY_DAY, *_DAYTIMES),
    "past": (*EARLIER, *EARLIER, _TODAY, *_DAYTIMES),
    "will": (*_LATER, *_LATER, *_DAYTIMES),
    "like": _DAYTIMES,
} | dict.fromkeys(("want", "can", "may", "should", "must"), (_TODAY, _LATER[0], _NOW, *_DAYTIMES))
_OFTEN = (("常常", "often"), ("总是", "always"), ("从来不", "never"), ("有时候", "sometimes"))
CLOCK = tuple((f"{number(hour, True)}点", f"at {english.number(hour)} o'clock") for hour in range(1, 13))
_OBJECT_DETERMINERS = spread({"": 8, "一": 9, "#": 10, "这": 4, "那": 3, "这些": 2, "那些": 2, "owner": 7})
DEFINITE = ("这", "那", "owner", "这些", "那些")
_ALL_OWNERS = tuple(OWNERS)
_KIN_OWNERS = ("我", "你", "他", "她", "我们", "小明", "小红")
_KINDS = spread({"transitive": 50, "intransitive": 20, "giving": 8, "going": 14, "owning": 8})
ASKED_FOR = tuple(BY_CHINESE[word] for word in ("写", "吃", "喝", "买", "卖", "找", "用", "听", "学", "洗", "做", "画"))


class ClauseMaker(Chooser):
    """Chooses noun phrases and clauses that make sense together."""

    # Phrases

    def _noun_phrase(self, noun: Noun, determiners: Sequence[str], adjective: float = 0.3) -> Phrase:
        determiner = self.pick(determiners)
        count = 0
        if determiner == "owner":
            determiner = self.pick(_ALL_OWNERS)
        elif determiner in ("这些", "那些") and not noun.plural:
            determiner = "" if not noun.container else "这"
        if determiner in ("一", "#", "这", "那") and not noun.measure:
            determiner = ""
        if determiner == "一":
            determiner, count = "", 1
        elif determiner == "#":
            determiner, count = "", 2 + int(self._random() * (9 if self.chance(0.6) else 98))
        chosen = self.pick(BEFORE_NOUN[noun.sort]) if noun.sort in BEFORE_NOUN and self.chance(adjective) else None
        if chosen and determiner in OWNERS and len(chosen.chinese) > 1:
            chosen = None  # two 的 in a row read badly
        return noun_phrase(determiner, chosen, noun, count)

    def _subject(self) -> Phrase:
        chance = self._random()
        if chance < 0.5:
            return self.pick(PRONOUNS)
        if chance < 0.58:
            return self.pick(NAMES)
        if chance < 0.78:
            return noun_phrase(self.pick(_KIN_OWNERS), None, self.pick(SORTS["kin"]))
        return self._noun_phrase(self.pick(SORTS["person"]), ("the", "the", "这", "那", "那些"), adjective=0.25)

    # Clauses

    def _clause(
        self, subject: Phrase, moods: Sequence[str] = ANY_MOOD, negated: float = 0.2, timed: float = 0.4
    ) -> Clause:
        match self.pick(_KINDS):
            case "transitive":
                return self._with_verb(subject, self.pick(TRANSITIVE), moods, negated, timed)
            case "intransitive":
                return self._with_verb(subject, self.pick(INTRANSITIVE), moods, negated, timed)
            case "giving":
                return self._with_verb(subject, self.pick(GIVING), moods, negated, timed)
            case "going":
                return self._with_verb(subject, GO, moods, negated, timed)
            case _:
                return self._with_verb(subject, OWN, moods, negated, 0)

    def _with_verb(self, subject: Phrase, verb: Verb, moods: Sequence[str], negated: float, timed: float) -> Clause:
        mood = "present" if verb.stative else self.pick(moods)
        negative = mood != "must" and self.chance(negated)
        time = often = ("", "")
        if not verb.stative and self.chance(timed):
            if mood == "present" and not negative and self.chance(0.35):
                often = self.pick(_OFTEN)
            else:
                time = self.pick(CLOCK if mood != "like" and self.chance(0.2) else _TIMES[mood])
                negative = negative and time is not _EVERY_DAY
        clause = Clause(subject, verb, MOODS[mood], negative, time, often)
        if verb is GO:
            return self._going(clause)
        if verb in GIVING:
            return self._giving(clause)
        if not verb.stative and self.chance(0.2) and verb.english.base != "get":
            place = self.pick((*PLACES, HOME))
            clause = clause._replace(place=(f"在{place[0]}", place[1]))
        if not verb.objects:
            return clause._replace(combinations=(f"{subject.key}+{verb.english.name}",))
        return self._with_object(clause)

    def _with_object(self, clause: Clause) -> Clause:
        verb = clause.verb
        if verb.people and self.chance(0.35):
            other = self._other(clause.subject)
            return clause._replace(object=(other.chinese, other.object))
        noun = self.pick(verb.objects)
        phrase = self._object(noun, clause)
        combinations = (f"{verb.english.name}+{noun.english}", *phrase.combinations)
        return clause._replace(object=(phrase.chinese, phrase.object), bare=phrase.bare, combinations=combinations)

    def _object(self, noun: Noun, clause: Clause) -> Phrase:
        if noun.sort == "person":
            return self._noun_phrase(noun, ("这", "那", "那", "这些", "那些"))
        if clause.verb is OWN:
            return self._noun_phrase(noun, ("",) if clause.negative else ("一", "#", "#"))
        if clause.negative or clause.verb.stative:
            return self._noun_phrase(noun, ("", "", *DEFINITE), adjective=0.2)
        return self._noun_phrase(noun, _OBJECT_DETERMINERS)

    def _other(self, subject: Phrase) -> Phrase:
        """A pronoun as an object: never the subject itself."""
        while True:
            pronoun = self.pick(PRONOUNS)
            if pronoun.key != subject.key and {pronoun.key, subject.key} != {"I", "we"}:
                return pronoun

    def _going(self, clause: Clause) -> Clause:
        place = self.pick(PLACES)
        combinations: tuple[str, ...] = (f"go+{place[2]}",)
        purpose = ("", "")
        if self.chance(0.35) and not clause.negative and clause.mood.english != "past":
            inner = self._with_verb(clause.subject, self.pick((*ASKED_FOR[:4], *INTRANSITIVE[2:4])), ("present",), 0, 0)
            inner = inner._replace(place=("", ""))
            purpose = (inner.verb.chinese + inner.object[0], english.infinitive(inner.verb.english, inner.object[1]))
            combinations += inner.combinations
        return clause._replace(object=(place[0], place[2]), purpose=purpose, combinations=combinations)

    def _giving(self, clause: Clause) -> Clause:
        noun = self.pick(clause.verb.objects)
        phrase = self._noun_phrase(noun, ("这", "那", "owner") if clause.negative else ("一", "#", "#", "这", "owner"))
        other = self._other(clause.subject) if self.chance(0.7) else self.pick(NAMES)
        return clause._replace(
            receiver=(other.chinese, other.object),
            object=(phrase.chinese, phrase.object),
            combinations=(f"{clause.verb.english.base}+{noun.english}", *phrase.combinations),
        )
