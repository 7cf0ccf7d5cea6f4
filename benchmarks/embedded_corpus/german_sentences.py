"""German-English: the sentences that clauses are joined to, and questions."""

from . import english
from .german import (
    ALREADY,
    NAMES,
    NO_ADVERB,
    PRONOUNS,
    TENSES,
    THINGS,
    WER,
    Clause,
    Phrase,
    comparing,
    describing,
    number,
    relative,
)
from .german_clauses import (
    ANIMAL_VERBS,
    ANY_TENSE,
    ASKING,
    GOING,
    IF,
    INDEFINITE,
    NOW,
    PLACED,
    PLACES,
    PLAIN,
    THEN,
    TOLD,
    UNPLACED,
    ClauseMaker,
)
from .german_words import (
    ADJECTIVES_OF,
    BY_INFINITIVE,
    DATIVE,
    HABEN,
    INTRANSITIVE,
    MOTION,
    SAYING,
    SEIN,
    SORTS,
    TRANSITIVE,
    WITH_ZU,
    Verb,
)
from .grammar import Derivation, join, sentence, spread

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

_ERRANDS = tuple(
    BY_INFINITIVE[name]
    for name in (
        "kaufen",
        "essen",
        "trinken",
        "suchen",
        "treffen",
        "besuchen",
        "abholen",
        "arbeiten",
        "einkaufen",
        "tanzen",
    )
)
_OF_THINGS = tuple(verb for verb in TRANSITIVE if verb.objects and (not verb.people or verb.english.base == "see"))
_MET = tuple(verb for verb in TRANSITIVE if verb.people)
_COUNTED = (*(BY_INFINITIVE[name] for name in ("lesen", "schreiben", "essen", "kaufen", "verkaufen", "sehen")), HABEN)
_ABOUT_THINGS = tuple(verb for verb in TRANSITIVE if any(noun in THINGS for noun in verb.objects))
_IT_IS = (("schwer", "hard"), ("schön", "nice"), ("gut", "good"), ("wichtig", "important"), ("verboten", "forbidden"))
_ASKED = (("ob", "whether"), ("warum", "why"), ("wann", "when"), ("wo", "where"))
_STRUCTURES = spread(
    {"_statement": 22, "_inverted": 12, "_yes_no": 9, "_wh": 11, "_because": 12, "_that": 9, "_if": 7, "_with_zu": 8}
    | {"_in_order_to": 4, "_relative_subject": 6, "_relative_object": 5, "_and": 6, "_describing": 6, "_comparing": 3}
    | {"_liking": 5, "_there_is": 4, "_age": 3, "_price": 3}
)
_LIKE = BY_INFINITIVE["lieben"]._replace(english=english.verb("like"))


class GermanEnglish(ClauseMaker):
    """Derives one German-English sentence pair after another."""

    def derive(self) -> Derivation:
        derivation: Derivation = getattr(self, self.pick(_STRUCTURES))()
        return derivation

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
                return self._question(self.pick(_OF_THINGS), "was", "what")
            case "wen":
                return self._question(self.pick(_MET), "wen", "whom")
            case "wohin":
                return self._question(self.pick(MOTION[:2]), "wohin", "where")
            case "wer":
                clause = self._clause(WER, negated=0.05, adverb=0.2)
                return Derivation(sentence(clause.german(), "?"), sentence(clause.english(), "?"), clause.name("who"))
            case "wie viele":
                return self._how_many()
            case "warum":
                clause = self._clause(self._subject(), negated=0.3, adverb=0.1)
                return self._asked(clause, "warum", "why")
            case "wo":
                german, text, verbs = "wo", "where", PLACED
            case "wann":
                german, text, verbs = "wann", "when", (*PLACED, *MOTION, *UNPLACED)
            case _:
                german, text, verbs = "wie oft", "how often", (*PLACED, *MOTION)
        clause = self._with_verb(self._human(), self.pick(verbs), ASKING, 0, 0)
        return self._asked(clause if clause.verb.goals else clause._replace(tail=("", "")), german, text)

    def _asked(self, clause: Clause, first: str, wh: str) -> Derivation:
        german, text = clause.german_inverted(first), clause.english_question(wh)
        return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name(wh))

    def _question(self, verb: Verb, first: str, wh: str) -> Derivation:
        """A question whose first word stands for an object or a goal."""
        clause = self._with_verb(self._human(), verb, ANY_TENSE, 0, 0.1)
        combinations = (f"{verb.english.name}+{wh}",)
        clause = clause._replace(direct=("", ""), pronoun=("", ""), tail=("", ""), combinations=combinations)
        return self._asked(clause, first, wh)

    def _how_many(self) -> Derivation:
        verb = self.pick(_COUNTED)
        noun = self.pick(verb.objects)
        if not noun.plural:
            return self._how_many()
        subject = self._human()
        clause = Clause(subject, verb, TENSES[self.pick(PLAIN)], combinations=(f"{verb.english.name}+{noun.english}",))
        german = clause.german_inverted(f"wie viele {noun.plural}")
        text = clause.english_question(f"how many {noun.english_plural}")
        return Derivation(sentence(german, "?"), sentence(text, "?"), clause.name("how many"))

    def _because(self) -> Derivation:
        """The verb of the reason stands last in German."""
        german, word = self.pick((("weil", "because"), ("weil", "because"), ("obwohl", "although")))
        main = self._clause(self._subject(), NOW, adverb=0.1)
        return self._linked(main, self._any(), german, word)

    def _linked(self, main: Clause, inner: Clause, german: str, word: str) -> Derivation:
        return Derivation(
            sentence(f"{main.german()}, {inner.german_final(german)}"),
            sentence(f"{main.english()} {word} {inner.english()}"),
            (*main.name("statement"), *inner.name(word)),
        )

    def _that(self) -> Derivation:
        subject = self._human()
        inner = self._any(ANY_TENSE)
        if self.chance(0.35):
            placed = inner.tail[0] or inner.adverb.german or inner.verb.stative
            german, word = self.pick(_ASKED[:2] if placed else _ASKED)
            return self._linked(Clause(subject, SAYING[2], TENSES["present"], negation="nicht"), inner, german, word)
        return self._linked(Clause(subject, self.pick(SAYING), TENSES[self.pick(PLAIN)]), inner, "dass", "that")

    def _human(self) -> Phrase:
        subject = self._subject()
        return self.pick(PRONOUNS) if subject.sort == "animal" else subject

    def _if(self) -> Derivation:
        """The condition comes first, and the verb of the main clause right after it."""
        inner = self._any(IF)
        main = self._clause(self._subject(), THEN, adverb=0.1)
        return Derivation(
            sentence(f"{inner.german_final('wenn')}, {main.german_inverted()}"),
            sentence(f"if {inner.english()}, {main.english()}"),
            (*inner.name("if"), *main.name("then")),
        )

    def _with_zu(self) -> Derivation:
        inner = self._clause(self._human(), ("present",), negated=0, adverb=0.2)
        inner = inner._replace(adverb=NO_ADVERB) if inner.adverb.late else inner
        while inner.verb.stative:
            inner = self._clause(self._human(), ("present",), negated=0, adverb=0)
        if self.chance(0.4):
            german, word = self.pick(_IT_IS)
            # whoever would sleep in `Es ist schön, zu schlafen` is not said, and so no part of a combination
            told = () if inner.verb in INTRANSITIVE else inner.combinations
            combinations: tuple[str, ...] = (*told, f"{word}+{inner.verb.english.name}")
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
        main = self._with_verb(subject, self.pick(MOTION[:2]), GOING, 0, 0.15)
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
        inner = self._clause(relative(head), ANY_TENSE, adverb=0.15)
        if self.chance(0.6):
            main = describing(head, self.pick(ADJECTIVES_OF[noun.sort]))
        else:
            main = self._with_verb(
                head, self.pick(INTRANSITIVE if noun.sort == "person" else ANIMAL_VERBS[4:7]), NOW, 0, 0
            )
        return self._around(main, inner)

    def _relative_object(self) -> Derivation:
        verb = self.pick(_ABOUT_THINGS)
        noun = self.pick([noun for noun in verb.objects if noun in THINGS])
        head = self._noun_phrase(noun, ("der", "der", "dieser"), adjective=0.15)
        pronoun = relative(head, case=1)
        clause = Clause(self._human(), verb, TENSES[self.pick(PLAIN if verb.stative else ANY_TENSE[:-5])])
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
        first = self._clause(self._subject(), TOLD, adverb=0)
        second = self._clause(self._subject(), TOLD, adverb=0)
        return Derivation(
            sentence(f"{first.german()}{comma} {german} {second.german()}"),
            sentence(f"{first.english()}{comma or ','} {word} {second.english()}"),
            (*first.name("statement"), *second.name(word)),
        )

    def _describing(self) -> Derivation:
        if self.chance(0.4):
            clause = self._state(self.pick(PLAIN))
        else:
            sort = self.pick(("text", "food", "dish", "drink", "clothes", "thing", "place"))
            subject = self._noun_phrase(
                self.pick(SORTS[sort]), ("der", "der", "dieser", "mein", "sein"), adjective=0.15
            )
            negation = "nicht" if self.chance(0.2) else ""
            clause = describing(subject, self.pick(ADJECTIVES_OF[sort]), self.pick(PLAIN), negation)
        return Derivation(sentence(clause.german()), sentence(clause.english()), clause.name("statement"))

    def _comparing(self) -> Derivation:
        sort = self.pick(("person", "animal", "text", "clothes", "thing", "place"))
        one, two = (
            self._noun_phrase(self.pick(SORTS[sort]), ("der", "mein", "dieser"), adjective=0.1) for _ in range(2)
        )
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
            return Derivation(sentence(german, "?"), sentence(text, "?"), (*combinations, f"{person.key}+question"))
        if person in NAMES or self.chance(0.4):
            german = join(liked.nominative, verb, person.dative, nicht)
        else:
            german = join(person.dative, verb, liked.nominative, nicht)
        return Derivation(sentence(german), sentence(told.english()), (*combinations, f"{person.key}+statement"))

    def _there_is(self) -> Derivation:
        sort = self.pick(("person", "animal", "food", "dish", "drink", "text", "thing"))
        noun = self.pick(SORTS[sort])
        phrase = self._noun_phrase(noun, INDEFINITE)
        place = self.pick(PLACES)
        verb = "are" if phrase.person == 5 else "is"
        combinations = (*phrase.combinations, f"{noun.english}+{place[1]}")
        if self.chance(0.25):
            german, text, mark = "gibt es", f"{verb} there", "?"
        else:
            german, text, mark = "es gibt", f"there {verb}", "."
        return Derivation(
            sentence(join(german, phrase.accusative, place[0]), mark),
            sentence(join(text, phrase.object, place[1]), mark),
            combinations,
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
            TENSES[self.pick(PLAIN)],
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
