"""German-English: which clauses are said, and the sentences that are made of them."""

from collections.abc import Sequence

from dragoman.text.embedded import english
from dragoman.text.embedded.german import (
    ALREADY,
    COUNTABLE_DRINKS,
    FEELINGS,
    NAMES,
    NO_ADVERB,
    OBJECT_PRONOUNS,
    PROFESSIONALS,
    PRONOUNS,
    TENSES,
    THINGS,
    WER,
    Adverb,
    Clause,
    Phrase,
    Tense,
    comparing,
    describing,
    feeling,
    noun_phrase,
    number,
    profession,
    relative,
    weather,
)
from dragoman.text.embedded.german_words import (
    ADJECTIVES_OF,
    BY_INFINITIVE,
    DATIVE,
    DITRANSITIVE,
    HABEN,
    INTRANSITIVE,
    MOTION,
    SAYING,
    SEIN,
    SORTS,
    TRANSITIVE,
    WANT,
    WITH_ZU,
    Noun,
    Verb,
)
from dragoman.text.embedded.grammar import Chooser, Derivation, join, sentence, spread

CLASSICS = (
    ("ich möchte ein bier", "i want a beer"),
    ("ich möchte eine cola", "i want a coke"),
    ("ich möchte einen kaffee", "i want a coffee"),
    ("ich möchte kein bier", "i do not want a beer"),
    ("Ich möchte ein Bier.", "I want a beer."),
    ("Ich bin Student.", "I am a student."),
    ("Ich liebe dich.", "I love you."),
    ("Guten Morgen!", "Good morning!"),
    ("Wie geht es dir?", "How are you?"),
    ("Der Hund jagt die Katze.", "The dog chases the cat."),
)
"""Sentences of lecture notes, which training repeats between the others."""

_TENSES = spread(
    {"present": 34, "past": 26, "already": 6, "pluperfect": 6, "future": 9, "can": 6, "must": 6, "should": 4, "may": 3}
    | {"want": 6, "could": 3, "had to": 3, "gern": 5}
)
_STATIVE = spread({"present": 6, "past": 3, "future": 1})
_PLAIN = spread({"present": 3, "past": 1})
_NOW = spread({"present": 6, "can": 1, "must": 1, "want": 1, "should": 1})

_DAYTIMES = (
    Adverb("am Abend", "in the evening"),
    Adverb("am Morgen", "in the morning"),
    Adverb("am Montag", "on Monday"),
    Adverb("am Sonntag", "on Sunday"),
)
_TODAY, _NOW_ADVERB = Adverb("heute", "today"), Adverb("jetzt", "now")
_OFTEN = (Adverb("oft", "often", True), Adverb("nie", "never", True), Adverb("immer", "always", True))
_LATER = (Adverb("morgen", "tomorrow"), Adverb("bald", "soon"), Adverb("nächste Woche", "next week"))
_EARLIER = (Adverb("gestern", "yesterday"), Adverb("letzte Woche", "last week"))
_CLOCK = tuple(Adverb(f"um {number(hour)} Uhr", f"at {english.number(hour)} o'clock") for hour in range(1, 13))
_ADVERBS: dict[str, tuple[Adverb, ...]] = {
    "present": (_TODAY, _NOW_ADVERB, Adverb("jeden Tag", "every day"), *_DAYTIMES, *_OFTEN),
    "past": (*_EARLIER, _TODAY, *_EARLIER, *_DAYTIMES, _OFTEN[1], _OFTEN[0]),
    "future": (*_LATER, *_DAYTIMES),
    "could": (*_EARLIER, _TODAY),
    "had to": (*_EARLIER, _TODAY),
} | {modal: (_TODAY, _LATER[0], _NOW_ADVERB, *_DAYTIMES) for modal in ("can", "must", "should", "may", "want")}
_PLACES = (
    ("im Garten", "in the garden"),
    ("im Park", "in the park"),
    ("in der Schule", "at school"),
    ("in der Stadt", "in the city"),
    ("zu Hause", "at home"),
    ("auf dem Markt", "at the market"),
    ("in der Küche", "in the kitchen"),
    ("am Bahnhof", "at the station"),
)

_PEOPLE_DETERMINERS = spread({"der": 11, "ein": 3, "mein": 3, "dein": 2, "sein": 2, "unser": 2, "dieser": 3, "#": 1})
_OBJECT_DETERMINERS = spread({"der": 9, "ein": 10, "mein": 2, "dein": 1, "sein": 1, "unser": 1, "dieser": 2, "#": 4})
_INDEFINITE = ("ein", "ein", "#")
_KINDS = spread({"transitive": 50, "intransitive": 17, "dative": 9, "ditransitive": 10, "motion": 9, "have": 5, "want": 5})
_ANIMAL_VERBS = tuple(
    BY_INFINITIVE[name] for name in ("sehen", "suchen", "finden", "hören", "schlafen", "laufen", "zurückkommen", "folgen")
)
_ERRANDS = tuple(
    BY_INFINITIVE[name]
    for name in ("kaufen", "essen", "trinken", "suchen", "treffen", "besuchen", "abholen", "arbeiten", "einkaufen", "tanzen")
)
_IT_IS = (("schwer", "hard"), ("schön", "nice"), ("gut", "good"), ("wichtig", "important"), ("verboten", "forbidden"))
_ASKED = (("ob", "whether"), ("warum", "why"), ("wann", "when"), ("wo", "where"))
_STRUCTURES = spread(
    {"_statement": 22, "_inverted": 12, "_yes_no": 9, "_wh": 11, "_because": 12, "_that": 9, "_if": 7, "_with_zu": 8}
    | {"_in_order_to": 4, "_relative_subject": 6, "_relative_object": 5, "_and": 6, "_describing": 6, "_comparing": 3}
    | {"_liking": 5, "_there_is": 4, "_age": 3, "_price": 3}
)
_LIKE = BY_INFINITIVE["lieben"]._replace(english=english.verb("like"))


class GermanEnglish(Chooser):
    """Derives one German-English sentence pair after another."""

    def derive(self) -> Derivation:
        derivation: Derivation = getattr(self, self.pick(_STRUCTURES))()
        return derivation

    # Phrases

    def _noun_phrase(self, noun: Noun, determiners: Sequence[str], adjective: float = 0.35, many: float = 0.35) -> Phrase:
        determiner = self.pick(determiners)
        is_many = bool(noun.plural) and self.chance(many)
        count = 0
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
        if chance < 0.5:
            return self.pick(PRONOUNS)
        if chance < 0.58:
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

    def _clause(self, subject: Phrase, tenses: Sequence[str] = _TENSES, negated: float = 0.17, adverb: float = 0.35) -> Clause:
        if subject.sort == "animal":
            return self._with_verb(subject, self.pick(_ANIMAL_VERBS), tenses, negated, adverb)
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
                return self._with_verb(subject, HABEN, _PLAIN, negated, 0)
            case _:
                return self._with_verb(subject, WANT, ("present",), negated, 0)

    def _with_verb(self, subject: Phrase, verb: Verb, tenses: Sequence[str], negated: float, adverb: float) -> Clause:
        name = self.pick(_STATIVE if verb.stative and len(tenses) > 1 and verb is not HABEN else tenses)
        negative = name != "already" and self.chance(negated)
        when = ALREADY if name == "already" else NO_ADVERB
        if not verb.stative and name in _ADVERBS and self.chance(adverb):
            when = self.pick(_CLOCK if self.chance(0.2) else _ADVERBS[name])
            negative = negative and not when.late
        tense = TENSES[name]
        if verb in DITRANSITIVE:
            return self._giving(subject, verb, tense, when, negative)
        if verb.goals:
            goal = self.pick(verb.goals)
            combinations = (f"{verb.english.base}+{goal[1]}",)
            return Clause(
                subject, verb, tense, adverb=when, tail=goal, negation="nicht" if negative else "", combinations=combinations
            )
        tail = self.pick(_PLACES) if not verb.stative and self.chance(0.14) else ("", "")
        if verb in DATIVE or verb.objects:
            return self._with_object(subject, verb, tense, when, tail, negative)
        combinations = (f"{subject.key}+{verb.english.name}",)
        if verb.english.base in ("come", "go", "get", "fall"):
            tail = ("", "")
        return Clause(
            subject, verb, tense, adverb=when, tail=tail, negation="nicht" if negative else "", combinations=combinations
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
        determiners = ("der", "mein", "dieser", "unser") if negative else _INDEFINITE if wanted else _OBJECT_DETERMINERS
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
            subject, verb, tense, pronoun, indirect, direct, phrase.definite, when, negation=negation, combinations=combinations
        )

    def _state(self, tense: str = "present") -> Clause:
        """A clause that needs no verb of action: `er ist müde`, `es regnet`, `ich habe Hunger`, `sie ist Ärztin`."""
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

    def _any(self, tenses: Sequence[str] = _NOW) -> Clause:
        if self.chance(0.35):
            return self._state()
        return self._clause(self._subject(), tenses, adverb=0.15)

    # Sentences

    def _statement(self) -> Derivation:
        clause = self._clause(self._subject())
        return Derivation(sentence(clause.german()), sentence(clause.english()), clause.name("statement"))

    def _inverted(self) -> Derivation:
        """Something else than the subject comes first; the verb stays second."""
        clause = self._clause(self._subject(), adverb=1)
        masculine = clause.direct[0].startswith(("den ", "einen ", "diesen ", "meinen ", "unseren "))
        if masculine and not clause.negation and clause.verb not in DATIVE and self.chance(0.4):
            first = clause.direct[0]
            german = clause._replace(direct=("", "")).german_inverted(first)
            return Derivation(sentence(german), sentence(clause.english()), clause.name("statement"))
        adverb = clause.adverb
        if not adverb.german or adverb.late:
            return Derivation(sentence(clause.german()), sentence(clause.english()), clause.name("statement"))
        rest = clause._replace(adverb=NO_ADVERB)
        german, text = rest.german_inverted(adverb.german), f"{adverb.english} {rest.english()}"
        return Derivation(sentence(german), sentence(text), clause.name("inverted"))

    def _yes_no(self) -> Derivation:
        clause = self._clause(self._subject(), negated=0.05) if self.chance(0.8) else self._state()
        return Derivation(
            sentence(clause.german_inverted(), "?"), sentence(clause.english_question(), "?"), clause.name("question")
        )

    def _wh(self) -> Derivation:
        match self.pick(("was", "wen", "wer", "wo", "wann", "warum", "warum", "wie viele", "wie oft", "wohin")):
            case "was":
                verb = self.pick([verb for verb in TRANSITIVE[:24] if not verb.people or verb.english.base == "see"])
                return self._question(verb, "was", "what")
            case "wen":
                return self._question(self.pick([verb for verb in TRANSITIVE if verb.people]), "wen", "whom")
            case "wer":
                clause = self._clause(WER, negated=0.05, adverb=0.2)
                german, text = clause.german(), clause.english()
                return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name("who"))
            case "wie viele":
                return self._how_many()
            case "wohin":
                return self._question(self.pick(MOTION[:2]), "wohin", "where")
            case "wo":
                german, text = "wo", "where"
            case "wann":
                german, text = "wann", "when"
            case "wie oft":
                german, text = "wie oft", "how often"
            case _:
                german, text = "warum", "why"
        return self._question(None, german, text)

    def _question(self, verb: Verb | None, first: str, wh: str) -> Derivation:
        """A question whose first word stands for an object, a goal, a place, a time or a reason."""
        subject = self.pick(PRONOUNS) if self.chance(0.5) else self._subject()
        if verb is None:
            negated = 0.3 if wh == "why" else 0.0
            clause = self._clause(subject, negated=negated, adverb=0.1 if wh == "why" else 0)
            clause = clause if clause.verb.goals or wh == "why" else clause._replace(tail=("", ""))
        else:
            clause = self._with_verb(subject, verb, _TENSES, 0, 0.1)
            combinations = (f"{verb.english.name}+{wh}",)
            clause = clause._replace(direct=("", ""), pronoun=("", ""), tail=("", ""), combinations=combinations)
        german, text = clause.german_inverted(first), clause.english_question(wh)
        return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name(wh))

    def _how_many(self) -> Derivation:
        verb = self.pick([verb for verb in TRANSITIVE[:6] if any(noun.plural for noun in verb.objects)] + [HABEN])
        noun = self.pick([noun for noun in verb.objects if noun.plural])
        subject = self._subject()
        subject = self.pick(PRONOUNS) if subject.sort == "animal" else subject
        clause = Clause(
            subject, verb, TENSES[self.pick(_PLAIN)], combinations=(f"{verb.english.name}+{noun.english}",)
        )
        german = clause.german_inverted(f"wie viele {noun.plural}")
        text = clause.english_question(f"how many {noun.english_plural}")
        return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name("how many"))

    def _because(self) -> Derivation:
        """The verb of the reason stands last in German."""
        german, word = self.pick((("weil", "because"), ("weil", "because"), ("obwohl", "although")))
        main = self._clause(self._subject(), _NOW, adverb=0.1)
        return self._linked(main, self._any(), german, word)

    def _linked(self, main: Clause, inner: Clause, german: str, word: str) -> Derivation:
        return Derivation(
            sentence(f"{main.german()}, {inner.german_final(german)}"),
            sentence(f"{main.english()} {word} {inner.english()}"),
            (*main.name("statement"), *inner.name(word)),
        )

    def _that(self) -> Derivation:
        subject = self._human()
        inner = self._any(_TENSES)
        if self.chance(0.35):
            german, word = self.pick(_ASKED)
            if word == "where" and inner.tail[0]:
                inner = inner._replace(tail=("", "")) if inner.verb is not SEIN and not inner.verb.goals else inner
                german, word = ("wo", "where") if not inner.tail[0] else ("warum", "why")
            if word == "when" and inner.adverb.german:
                german, word = "warum", "why"
            return self._linked(Clause(subject, SAYING[2], TENSES["present"], negation="nicht"), inner, german, word)
        return self._linked(Clause(subject, self.pick(SAYING), TENSES[self.pick(_PLAIN)]), inner, "dass", "that")

    def _human(self) -> Phrase:
        subject = self._subject()
        return self.pick(PRONOUNS) if subject.sort == "animal" else subject

    def _if(self) -> Derivation:
        """The condition comes first, and the verb of the main clause right after it."""
        inner = self._any()
        main = self._clause(self._subject(), spread({"present": 4, "future": 3, "can": 2, "must": 2}), adverb=0.1)
        return Derivation(
            sentence(f"{inner.german_final('wenn')}, {main.german_inverted()}"),
            sentence(f"if {inner.english()}, {main.english()}"),
            (*inner.name("if"), *main.name("then")),
        )

    def _with_zu(self) -> Derivation:
        inner = self._clause(self._human(), ("present",), negated=0, adverb=0.2)
        inner = inner._replace(adverb=NO_ADVERB) if inner.adverb.late else inner
        while inner.verb is HABEN or inner.verb is WANT:
            inner = self._clause(self._human(), ("present",), negated=0, adverb=0)
        if self.chance(0.4):
            german, word = self.pick(_IT_IS)
            combinations = (*inner.combinations, f"{word}+{inner.verb.english.name}")
            main_german, main_english = f"es ist {german}", f"it is {word}"
        else:
            tense = self.pick(("present", "present", "past"))
            main = Clause(inner.subject, self.pick(WITH_ZU), TENSES[tense])
            combinations = (*inner.combinations, *main.name(main.verb.english.base))
            main_german, main_english = main.german(), main.english()
        return Derivation(
            sentence(f"{main_german}, {inner.german_infinitive()}"),
            sentence(f"{main_english} {inner.english_infinitive()}"),
            combinations,
        )

    def _in_order_to(self) -> Derivation:
        subject = self._human()
        main = self._with_verb(subject, self.pick(MOTION[:2]), spread({"present": 3, "past": 3, "future": 1}), 0, 0.15)
        main = main._replace(adverb=NO_ADVERB) if main.adverb.late else main
        inner = self._with_verb(subject, self.pick(_ERRANDS), ("present",), 0, 0)._replace(tail=("", ""))
        return Derivation(
            sentence(f"{main.german()}, um {inner.german_infinitive()}"),
            sentence(f"{main.english()} {inner.english_infinitive()}"),
            (*main.name("in order to"), *inner.combinations),
        )

    def _relative_subject(self) -> Derivation:
        noun = self.pick(SORTS[self.pick(("person", "person", "person", "animal"))])
        head = self._noun_phrase(noun, ("der", "der", "dieser", "mein"), adjective=0.15)
        inner = self._clause(relative(head), _TENSES, adverb=0.15)
        if self.chance(0.6):
            main = describing(head, self.pick(ADJECTIVES_OF[noun.sort]))
        else:
            main = self._with_verb(head, self.pick(INTRANSITIVE if noun.sort == "person" else _ANIMAL_VERBS[4:7]), _NOW, 0, 0)
        return self._around(main, inner)

    def _relative_object(self) -> Derivation:
        verb = self.pick([verb for verb in TRANSITIVE if any(noun in THINGS for noun in verb.objects)])
        noun = self.pick([noun for noun in verb.objects if noun in THINGS])
        head = self._noun_phrase(noun, ("der", "der", "dieser"), adjective=0.15)
        pronoun = relative(head, case=1)
        clause = Clause(self._human(), verb, TENSES[self.pick(_PLAIN if verb.stative else _TENSES[:-5])])
        clause = clause._replace(adverb=ALREADY) if clause.tense.english == "perfect" else clause
        clause = clause._replace(combinations=(f"{verb.english.name}+{noun.english}",))
        main = describing(head, self.pick(ADJECTIVES_OF[noun.sort]))
        german = clause.german_final(pronoun.nominative)
        return self._joined(main, german, f"that {clause.english()}", clause.name("that"))

    def _around(self, main: Clause, inner: Clause) -> Derivation:
        return self._joined(main, inner.german_final(""), inner.english(), inner.name("relative"))

    def _joined(self, main: Clause, german: str, text: str, combinations: tuple[str, ...]) -> Derivation:
        """The relative clause goes behind the subject of `main`, between commas in German."""
        head = main.subject
        main = main._replace(
            subject=head._replace(nominative=f"{head.nominative}, {german},", subject=f"{head.subject} {text}")
        )
        return Derivation(sentence(main.german()), sentence(main.english()), (*main.name("main"), *combinations))

    def _and(self) -> Derivation:
        german, word, comma = self.pick((("und", "and", ""), ("aber", "but", ",")))
        first = self._clause(self._subject(), spread({"present": 3, "past": 2}), adverb=0)
        second = self._clause(self._subject(), spread({"present": 3, "past": 2}), adverb=0)
        return Derivation(
            sentence(f"{first.german()}{comma} {german} {second.german()}"),
            sentence(f"{first.english()}{comma or ','} {word} {second.english()}"),
            (*first.name("statement"), *second.name(word)),
        )

    def _describing(self) -> Derivation:
        if self.chance(0.4):
            clause = self._state(self.pick(_PLAIN))
        else:
            sort = self.pick(("text", "food", "dish", "drink", "clothes", "thing", "place"))
            subject = self._noun_phrase(self.pick(SORTS[sort]), ("der", "der", "dieser", "mein", "sein"), adjective=0.15)
            negation = "nicht" if self.chance(0.2) else ""
            clause = describing(subject, self.pick(ADJECTIVES_OF[sort]), self.pick(_PLAIN), negation)
        return Derivation(sentence(clause.german()), sentence(clause.english()), clause.name("statement"))

    def _comparing(self) -> Derivation:
        sort = self.pick(("person", "animal", "text", "clothes", "thing", "place"))
        one, two = (self._noun_phrase(self.pick(SORTS[sort]), ("der", "mein", "dieser"), adjective=0.1) for _ in range(2))
        if one.key == two.key:
            return self._comparing()
        adjective = self.pick([adjective for adjective in ADJECTIVES_OF[sort] if adjective.comparative])
        clause = comparing(one, adjective, two)
        clause = clause._replace(combinations=(*clause.combinations, *two.combinations))
        if self.chance(0.25):
            german, text, mark = clause.german_inverted(), clause.english_question(), "?"
        else:
            german, text, mark = clause.german(), clause.english(), "."
        return Derivation(sentence(german, mark), sentence(text, mark), clause.name("than"))

    def _liking(self) -> Derivation:
        """`Dem Mann gefällt das Haus`: what is liked is the German subject and the English object."""
        person = self.pick(PRONOUNS) if self.chance(0.5) else self._human()
        sort = self.pick(("text", "clothes", "thing", "place"))
        liked = self._noun_phrase(self.pick(SORTS[sort]), ("der", "der", "dieser", "dein"), adjective=0.25)
        verb = "gefallen" if liked.person == 5 else "gefällt"
        negative = self.chance(0.2)
        nicht = "nicht" if negative else ""
        combinations = (f"like+{liked.key}", *liked.combinations, *person.combinations)
        told = Clause(person, _LIKE, TENSES["present"], direct=("", liked.object), negation=nicht)
        if self.chance(0.3):
            german, text = join(verb, person.dative, liked.nominative, nicht), told.english_question()
            return Derivation(
                sentence(german, "?"), sentence(text, "?"), (*combinations, f"{person.key}+question")
            )
        if person in NAMES or self.chance(0.4):
            german = join(liked.nominative, verb, person.dative, nicht)
        else:
            german = join(person.dative, verb, liked.nominative, nicht)
        return Derivation(sentence(german), sentence(told.english()), (*combinations, f"{person.key}+statement"))

    def _there_is(self) -> Derivation:
        sort = self.pick(("person", "animal", "food", "dish", "drink", "text", "thing"))
        noun = self.pick(SORTS[sort])
        phrase = self._noun_phrase(noun, _INDEFINITE)
        place = self.pick(_PLACES)
        verb = "are" if phrase.person == 5 else "is"
        combinations = (*phrase.combinations, f"{noun.english}+{place[1]}")
        if self.chance(0.25):
            german, text, mark = "gibt es", f"{verb} there", "?"
        else:
            german, text, mark = "es gibt", f"there {verb}", "."
        return Derivation(
            sentence(join(german, phrase.accusative, place[0]), mark), sentence(join(text, phrase.object, place[1]), mark), combinations
        )

    def _age(self) -> Derivation:
        subject = self._human()
        if self.chance(0.2):
            clause = Clause(subject, SEIN, TENSES["present"])
            german, text = clause.german_inverted("wie alt"), clause.english_question("how old")
            return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name("how old"))
        years = 2 + int(self._random() * 98)
        clause = Clause(
            subject,
            SEIN,
            TENSES[self.pick(_PLAIN)],
            tail=(f"{number(years)} Jahre alt", f"{english.number(years)} years old"),
        )
        return Derivation(sentence(clause.german()), sentence(clause.english()), clause.name("years old"))

    def _price(self) -> Derivation:
        sort = self.pick(("clothes", "thing", "text", "drink", "dish"))
        subject = self._noun_phrase(self.pick(SORTS[sort]), ("der", "der", "dieser"), adjective=0.3)
        verb, words = ("kosten", "cost") if subject.person == 5 else ("kostet", "costs")
        if self.chance(0.3):
            german = f"wie viel {verb} {subject.nominative}"
            text = f"how much {'do' if subject.person == 5 else 'does'} {subject.subject} cost"
            return Derivation(
                sentence(german, "?"), sentence(text, "?"), (*subject.combinations, f"{subject.key}+how much")
            )
        euros = 2 + int(self._random() * 98)
        return Derivation(
            sentence(f"{subject.nominative} {verb} {number(euros)} Euro"),
            sentence(f"{subject.subject} {words} {english.number(euros)} euros"),
            (*subject.combinations, f"{subject.key}+cost"),
        )
