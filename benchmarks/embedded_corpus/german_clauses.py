"""German-English: what a clause says: its subject, verb, tense, objects, time and place."""

from collections.abc import Sequence

from . import english
from .german import (
    ALREADY,
    COUNTABLE_DRINKS,
    FEELINGS,
    NAMES,
    NO_ADVERB,
    OBJECT_PRONOUNS,
    PROFESSIONALS,
    PRONOUNS,
    TENSES,
    Adverb,
    Clause,
    Phrase,
    Tense,
    describing,
    feeling,
    noun_phrase,
    number,
    profession,
    weather,
)
from .german_words import (
    ADJECTIVES_OF,
    BY_INFINITIVE,
    DATIVE,
    DITRANSITIVE,
    HABEN,
    INTRANSITIVE,
    MOTION,
    SORTS,
    TRANSITIVE,
    WANT,
    Noun,
    Verb,
)
from .grammar import Chooser, spread

ANY_TENSE = spread(
    {"present": 38, "past": 26, "already": 6, "pluperfect": 6, "future": 9, "can": 6, "must": 6, "should": 4, "may": 3}
    | {"want": 6, "could": 3, "had to": 3, "gern": 5}
)
_STATIVE = spread({"present": 6, "past": 3, "future": 1})
IF, THEN = spread({"present": 6, "can": 1, "must": 1}), spread({"present": 4, "future": 3, "can": 2, "must": 2})
TOLD = spread({"present": 3, "past": 2})
GOING = spread({"present": 3, "past": 3, "future": 1})
ASKING = spread({"present": 4, "past": 4, "future": 1, "can": 1, "must": 1, "should": 1})
PLAIN = spread({"present": 3, "past": 1})
NOW = spread({"present": 6, "can": 1, "must": 1, "want": 1, "should": 1})

_DAYTIMES = (
    Adverb("am Abend", "in the evening"),
    Adverb("am Morgen", "in the morning"),
    Adverb("am Montag", "on Monday"),
    Adverb("am Sonntag", "on Sunday"),
)
_TODAY, _NOW_ADVERB, _EVERY_DAY = Adverb("heute", "today"), Adverb("jetzt", "now"), Adverb("jeden Tag", "every day")
_OFTEN = (Adverb("oft", "often", True), Adverb("nie", "never", True), Adverb("immer", "always", True))
_LATER = (Adverb("morgen", "tomorrow"), Adverb("bald", "soon"), Adverb("nächste Woche", "next week"))
_EARLIER = (Adverb("gestern", "yesterday"), Adverb("letzte Woche", "last week"))
_CLOCK = tuple(Adverb(f"um {number(hour)} Uhr", f"at {english.number(hour)} o'clock") for hour in range(1, 13))
_ADVERBS: dict[str, tuple[Adverb, ...]] = {
    "present": (_TODAY, _NOW_ADVERB, _EVERY_DAY, *_DAYTIMES, *_OFTEN),
    "past": (*_EARLIER, _TODAY, *_EARLIER, *_DAYTIMES, _OFTEN[1], _OFTEN[0]),
    "future": (*_LATER, *_DAYTIMES),
    "could": (*_EARLIER, _TODAY),
    "had to": (*_EARLIER, _TODAY),
} | dict.fromkeys(("can", "must", "should", "may", "want"), (_TODAY, _LATER[0], _NOW_ADVERB, *_DAYTIMES))
PLACES = (
    ("im Garten", "in the garden"),
    ("im Park", "in the park"),
    ("in der Schule", "at school"),
    ("in der Stadt", "in the city"),
    ("zu Hause", "at home"),
    ("auf dem Markt", "at the market"),
    ("in der Küche", "in the kitchen"),
    ("am Bahnhof", "at the station"),
)

# what is only ever a form of `ich`, `du` or `ihr` needs its share
_SUBJECTS = (*PRONOUNS, *PRONOUNS[:2], *PRONOUNS[:2], PRONOUNS[4])
_PEOPLE_DETERMINERS = spread({"der": 11, "ein": 3, "mein": 3, "dein": 2, "sein": 2, "unser": 2, "dieser": 3, "#": 1})
_OBJECT_DETERMINERS = spread({"der": 9, "ein": 10, "mein": 2, "dein": 1, "sein": 1, "unser": 1, "dieser": 2, "#": 4})
INDEFINITE = ("ein", "ein", "#")
_POSSESSIVES = ("mein", "dein", "sein", "unser")
_KINDS = spread(
    {"transitive": 50, "intransitive": 17, "dative": 9, "ditransitive": 10, "motion": 9, "have": 5, "want": 5}
)
ANIMAL_VERBS = tuple(
    BY_INFINITIVE[name]
    for name in ("sehen", "suchen", "finden", "hören", "schlafen", "laufen", "zurückkommen", "folgen")
)
UNPLACED = tuple(BY_INFINITIVE[name] for name in ("aufstehen", "einschlafen", "zurückkommen", "ausgehen"))
PLACED = tuple(verb for verb in (*TRANSITIVE, *INTRANSITIVE) if not verb.stative and verb not in UNPLACED)


class ClauseMaker(Chooser):
    """Chooses noun phrases and clauses that make sense together."""

    # Phrases

    def _noun_phrase(
        self, noun: Noun, determiners: Sequence[str], adjective: float = 0.35, many: float = 0.35
    ) -> Phrase:
        determiner = self.pick(determiners)
        is_many = bool(noun.plural) and self.chance(many)
        count = 0
        if determiner in _POSSESSIVES and noun.english in ("man", "woman", "mother", "father"):
            determiner, is_many = ("der", is_many) if noun.english in ("man", "woman") else (determiner, False)
        if determiner == "#":
            determiner = ""
            if noun.plural:
                is_many, count = True, 2 + int(self._random() * (11 if self.chance(0.5) else 98))
        elif determiner == "ein" and (is_many or not noun.plural):
            determiner = ""
        chosen = self.pick(ADJECTIVES_OF[noun.sort]) if self.chance(adjective) else None
        return noun_phrase(determiner, chosen, noun, is_many, count)

    def _subject(self) -> Phrase:
        chance = self._random()
        if chance < 0.53:
            return self.pick(_SUBJECTS)
        if chance < 0.6:
            return self.pick(NAMES)
        noun = self.pick(SORTS["animal" if chance > 0.93 else "person"])
        return self._noun_phrase(noun, _PEOPLE_DETERMINERS, adjective=0.25, many=0.3)

    def _other(self, subject: Phrase) -> Phrase:
        """A pronoun as an object: never the subject itself."""
        while True:
            pronoun = self.pick(OBJECT_PRONOUNS)
            if pronoun.key != subject.key and {pronoun.key, subject.key} != {"I", "we"}:
                return pronoun

    # Clauses

    def _clause(
        self, subject: Phrase, tenses: Sequence[str] = ANY_TENSE, negated: float = 0.17, adverb: float = 0.35
    ) -> Clause:
        if subject.sort == "animal":
            return self._with_verb(subject, self.pick(ANIMAL_VERBS), tenses, negated, adverb)
        match self.pick(_KINDS):
            case "transitive":
                return self._with_verb(subject, self.pick(TRANSITIVE), tenses, negated, adverb)
            case "intransitive":
                return self._with_verb(subject, self.pick(INTRANSITIVE), tenses, negated, adverb)
            case "dative":
                return self._with_verb(subject, self.pick(DATIVE), tenses, negated, adverb)
            case "ditransitive":
                return self._with_verb(subject, self.pick(DITRANSITIVE), tenses, negated, adverb)
            case "motion":
                return self._with_verb(subject, self.pick(MOTION), tenses, negated, adverb)
            case "have":
                return self._with_verb(subject, HABEN, PLAIN, negated, 0)
            case _:
                return self._with_verb(subject, WANT, ("present",), negated, 0)

    def _with_verb(self, subject: Phrase, verb: Verb, tenses: Sequence[str], negated: float, adverb: float) -> Clause:
        name = self.pick(_STATIVE if verb.stative and len(tenses) > 1 and verb is not HABEN else tenses)
        negative = name not in ("already", "gern") and self.chance(negated)
        when = ALREADY if name == "already" else NO_ADVERB
        if not verb.stative and name in _ADVERBS and self.chance(adverb):
            when = self.pick(_CLOCK if self.chance(0.2) else _ADVERBS[name])
            negative = negative and not when.late and when is not _EVERY_DAY
        tense = TENSES[name]
        if verb in DITRANSITIVE:
            return self._giving(subject, verb, tense, when, negative)
        if verb.goals:
            goal = self.pick(verb.goals)
            combinations = (f"{verb.english.base}+{goal[1]}",) if goal[1] != "in bed" else ()
            return Clause(
                subject,
                verb,
                tense,
                adverb=when,
                tail=goal,
                negation="nicht" if negative else "",
                combinations=combinations,
            )
        tail = self.pick(PLACES) if not verb.stative and self.chance(0.14) else ("", "")
        if verb in DATIVE or verb.objects:
            return self._with_object(subject, verb, tense, when, tail, negative)
        combinations = (f"{subject.key}+{verb.english.name}",)
        tail = ("", "") if verb in UNPLACED else tail
        return Clause(
            subject,
            verb,
            tense,
            adverb=when,
            tail=tail,
            negation="nicht" if negative else "",
            combinations=combinations,
        )

    def _with_object(
        self, subject: Phrase, verb: Verb, tense: Tense, when: Adverb, tail: tuple[str, str], negative: bool
    ) -> Clause:
        dative = verb in DATIVE
        nicht = "nicht" if negative else ""
        if (dative or verb.people) and not tense.adverb and self.chance(0.4):
            other = self._other(subject)
            pronoun = (other.dative if dative else other.accusative, other.object)
            return Clause(subject, verb, tense, pronoun=pronoun, adverb=when, tail=tail, negation=nicht)
        noun = self.pick(SORTS["person"] if dative else verb.objects)
        phrase = self._object(noun, negative, bare=bool(tense.adverb), wanted=verb is WANT)
        kein = negative and not phrase.definite
        direct = (phrase.dative if dative else phrase.accusative, phrase.object)
        return Clause(
            subject,
            verb,
            tense,
            direct=direct,
            definite=phrase.definite,
            adverb=when,
            tail=tail,
            negation="kein" if kein else nicht,
            combinations=(f"{verb.english.name}+{noun.english}", *phrase.combinations),
        )

    def _object(self, noun: Noun, negative: bool, bare: bool = False, wanted: bool = False) -> Phrase:
        if bare:
            return self._noun_phrase(noun, ("",), many=1)
        if wanted and noun in COUNTABLE_DRINKS and self.chance(0.7):
            adjective = self.pick(ADJECTIVES_OF["drink"]) if self.chance(0.3) else None
            return noun_phrase("kein" if negative else "ein", adjective, noun, False)
        if negative and self.chance(0.5):
            adjective = self.pick(ADJECTIVES_OF[noun.sort]) if self.chance(0.25) else None
            return noun_phrase("kein", adjective, noun, bool(noun.plural) and self.chance(0.4))
        determiners = ("der", "mein", "dieser", "unser") if negative else INDEFINITE if wanted else _OBJECT_DETERMINERS
        return self._noun_phrase(noun, determiners)

    def _giving(self, subject: Phrase, verb: Verb, tense: Tense, when: Adverb, negative: bool) -> Clause:
        noun = self.pick(verb.objects)
        phrase = self._object(noun, negative, bare=bool(tense.adverb))
        combinations = (f"{verb.english.base}+{noun.english}", *phrase.combinations)
        pronoun = indirect = ("", "")
        if self.chance(0.5):
            other = self._other(subject)
            pronoun = (other.dative, other.object)
        else:
            receiver = self._noun_phrase(self.pick(SORTS["person"]), ("der", "der", "mein", "sein"), adjective=0.15)
            indirect = (receiver.dative, receiver.object)
            combinations += (*receiver.combinations, f"{verb.english.base}+{receiver.key}")
        negation = ("nicht" if phrase.definite else "kein") if negative else ""
        direct = (phrase.accusative, phrase.object)
        return Clause(
            subject,
            verb,
            tense,
            pronoun,
            indirect,
            direct,
            phrase.definite,
            when,
            negation=negation,
            combinations=combinations,
        )

    def _state(self, tense: str = "present") -> Clause:
        """A clause that needs no verb of action: `er ist müde`, `es regnet`, `ich habe Hunger`, `er ist Arzt`."""
        chance = self._random()
        if chance < 0.2:
            return weather(int(self._random() * 2), tense)
        if chance < 0.35:
            noun = self.pick(PROFESSIONALS)
            subject = self._noun_phrase(noun, ("mein", "dein", "sein", "unser", "dieser"), many=0, adjective=0.2)
            subject = self.pick(PRONOUNS[:3]) if self.chance(0.5) else subject
            return profession(subject, int(self._random() * 3), tense)
        subject = self._subject()
        if subject.sort == "person" and chance < 0.65:
            return feeling(subject, int(self._random() * FEELINGS), tense, self.chance(0.2))
        return describing(subject, self.pick(ADJECTIVES_OF[subject.sort]), tense, "nicht" if self.chance(0.2) else "")

    def _any(self, tenses: Sequence[str] = NOW) -> Clause:
        if self.chance(0.35):
            return self._state()
        return self._clause(self._subject(), tenses, adverb=0.15)
