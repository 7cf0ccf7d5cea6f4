"""Chinese-English: the sentences that clauses are joined to, and questions. No spaces on the Chinese side."""

from . import english
from .chinese import MOODS, NAMES, PRONOUNS, WHO, Clause, Phrase, number
from .chinese_clauses import (
    ANY_MOOD,
    ASKED_FOR,
    CLOCK,
    DEFINITE,
    EARLIER,
    SIMPLE,
    TOLD,
    UNTOLD,
    ClauseMaker,
)
from .chinese_words import (
    BY_CHINESE,
    GO,
    INTRANSITIVE,
    ON_OR_IN,
    OWN,
    PREDICATE,
    SORTS,
    TRANSITIVE,
    Verb,
)
from .grammar import Derivation, sentence, spread

CLASSICS = (
    ("我爱你", "i love you"),
    ("为什么要工作？", "Why do we work?"),
    ("我爱你。", "I love you."),
    ("你好！", "Hello!"),
    ("谢谢！", "Thank you!"),
    ("再见！", "Goodbye!"),
    ("你好吗？", "How are you?"),
    ("你叫什么名字？", "What is your name?"),
    ("我是一个学生。", "I am a student."),
    ("今天天气很好。", "The weather is nice today."),
)
"""Sentences of lecture notes, which training repeats between the others."""

# `when` and `where` of the past would take 是 ... 的, not 了
_OPEN = spread({"present": 5, "will": 2, "want": 1, "can": 1, "should": 1})
_STRUCTURES = spread(
    {
        "_statement": 24,
        "_time_first": 6,
        "_yes_no": 11,
        "_wh": 14,
        "_linked": 13,
        "_knowing": 8,
        "_ba": 5,
        "_describing": 9,
    }
    | {"_relative": 6, "_being": 5, "_there_is": 5, "_comparing": 4, "_age": 4, "_price": 4, "_loving": 2}
)
_ABOUT = (("知道", "know knew known"), ("觉得", "think thought thought"), ("说", "say said said"), ("希望", "hope"))
_KNOWING = tuple(Verb(chinese, english.verb(words)) for chinese, words in _ABOUT)
_LOVE = Verb("爱", english.verb("love"), SORTS["person"] + SORTS["animal"], True, True)
_LINKS = (("因为", "所以", "because"), ("如果", "", "if"), ("虽然", "但是", "although"))
_WHOM = tuple(verb for verb in TRANSITIVE if verb.people)
_WITH_BA = tuple(BY_CHINESE[word] for word in ("吃", "喝", "卖", "洗"))
_COUNTED = (*(BY_CHINESE[word] for word in ("买", "吃", "卖", "写", "喝")), OWN)
_WRITTEN = tuple(BY_CHINESE[word] for word in ("买", "写", "做", "画", "卖"))


class ChineseEnglish(ClauseMaker):
    """Derives one Chinese-English sentence pair after another."""

    def derive(self) -> Derivation:
        derivation: Derivation = getattr(self, self.pick(_STRUCTURES))()
        return derivation

    def _told(self, clause: Clause, structure: str = "statement") -> Derivation:
        return Derivation(clause.chinese() + "。", sentence(clause.english()), clause.name(structure))

    def _asked(self, chinese: str, text: str, combinations: tuple[str, ...]) -> Derivation:
        return Derivation(chinese + "？", sentence(text, "?"), combinations)

    def _statement(self) -> Derivation:
        return self._told(self._clause(self._subject()))

    def _time_first(self) -> Derivation:
        clause = self._clause(self._subject(), timed=1)
        time = clause.time
        if not time[0] or time in CLOCK:
            return self._told(clause)
        clause = clause._replace(time=("", ""))
        return Derivation(
            clause.chinese(first=time[0]) + "。", sentence(f"{time[1]} {clause.english()}"), clause.name("time first")
        )

    def _yes_no(self) -> Derivation:
        clause = self._clause(self._subject(), negated=0)
        return self._asked(clause.chinese(asked=True) + "吗", clause.english_question(), clause.name("question"))

    def _wh(self) -> Derivation:
        subject = self._subject()
        match self.pick(("什么", "谁", "谁", "哪里", "什么时候", "为什么", "为什么", "几")):
            case "什么":
                clause = self._with_verb(subject, self.pick(ASKED_FOR), ANY_MOOD, 0, 0.2)
                clause = clause._replace(
                    object=("什么", ""), bare=False, combinations=(f"{clause.verb.english.name}+what",)
                )
                return self._asked(clause.chinese(), clause.english_question("what"), clause.name("what"))
            case "谁" if self.chance(0.4):
                clause = self._with_verb(subject, self.pick(_WHOM), ANY_MOOD, 0, 0.2)
                clause = clause._replace(
                    object=("谁", ""), bare=False, combinations=(f"{clause.verb.english.name}+whom",)
                )
                return self._asked(clause.chinese(), clause.english_question("whom"), clause.name("whom"))
            case "谁":
                clause = self._clause(WHO, negated=0.1)
                return self._asked(clause.chinese(), clause.english(), clause.name("who"))
            case "哪里":
                verb = self.pick((*ASKED_FOR, *INTRANSITIVE))
                clause = self._with_verb(subject, verb, _OPEN, 0, 0.1)._replace(place=("在哪里", ""))
                return self._asked(clause.chinese(), clause.english_question("where"), clause.name("where"))
            case "什么时候":
                verb = self.pick((*ASKED_FOR, *INTRANSITIVE, GO))
                clause = self._with_verb(subject, verb, _OPEN, 0, 0)
                return self._asked(clause.chinese(wh="什么时候"), clause.english_question("when"), clause.name("when"))
            case "几":
                return self._how_many(subject)
            case _:
                clause = self._clause(subject, negated=0.35, timed=0.15)
                return self._asked(clause.chinese(wh="为什么"), clause.english_question("why"), clause.name("why"))

    def _how_many(self, subject: Phrase) -> Derivation:
        verb = self.pick(_COUNTED)
        noun = self.pick(verb.objects)
        if not noun.measure:
            return self._how_many(subject)
        mood = "present" if verb is OWN else self.pick(TOLD)
        clause = Clause(subject, verb, MOODS[mood], object=(f"几{noun.measure}{noun.chinese}", ""))
        many = f"{english.plural(noun.container)} of {noun.english}" if noun.container else noun.plural
        combinations = (f"{verb.english.name}+{noun.english}", *clause.name("how many"))
        return self._asked(clause.chinese(), clause.english_question(f"how many {many}"), combinations)

    def _linked(self) -> Derivation:
        """因为 ... 所以 ..., 如果 ... 就 ..., 虽然 ... 但是 ...: both halves are marked in Chinese, one in English."""
        chinese, then, word = self.pick(_LINKS)
        raining = self.chance(0.2)
        moods = UNTOLD if raining or word == "if" else SIMPLE
        inner = self._clause(self._subject(), moods, timed=0.1)
        main = self._clause(self._subject(), moods, timed=0)
        first, inner_english, combinations = inner.chinese(), inner.english(), inner.name(word)
        if raining:
            weather, text = self.pick((("下雨", "it rains"), ("下雪", "it snows")))
            first, inner_english, combinations = weather, text, (f"{text}+{word}",)
        second = main.chinese(first=then) if then else main.chinese(wh="就")
        return Derivation(
            f"{chinese}{first}，{second}。",
            sentence(f"{word} {inner_english}, {main.english()}"),
            (*combinations, *main.name(f"after {word}")),
        )

    def _knowing(self) -> Derivation:
        inner = self._clause(self._subject(), timed=0.2)
        outer = Clause(self._subject(), self.pick(_KNOWING), MOODS["present"])
        return Derivation(
            f"{outer.chinese()}{inner.chinese()}。",
            sentence(f"{outer.english()} that {inner.english()}"),
            (*outer.name(outer.verb.english.base), *inner.name("that")),
        )

    def _ba(self) -> Derivation:
        """把 takes the object before the verb, and makes a bare noun definite."""
        verb = self.pick(_WITH_BA)
        noun = self.pick(verb.objects)
        phrase = self._noun_phrase(noun, ("the", "the", "这", "那", "owner") if noun.measure else ("the", "owner"), 0.2)
        time = self.pick(EARLIER) if self.chance(0.2) else ("", "")
        clause = Clause(self._subject(), verb, MOODS["past"], time=time)
        clause = clause._replace(object=(phrase.chinese, phrase.object))
        combinations = (f"{verb.english.name}+{noun.english}", *phrase.combinations, *clause.name("statement"))
        return Derivation(clause.chinese_with_ba() + "。", sentence(clause.english()), combinations)

    def _described(self) -> Phrase:
        sort = self.pick(("reading", "film", "food", "drink", "clothes", "thing", "animal", "person"))
        if sort == "person":
            return self._subject()
        return self._noun_phrase(self.pick(SORTS[sort]), DEFINITE, adjective=0.15)

    def _describing(self) -> Derivation:
        """很 where English has a form of `be`."""
        subject = self._described()
        adjective = self.pick(PREDICATE[subject.sort])
        combinations = (*subject.combinations, f"{adjective.english}+{subject.key}", f"{subject.key}+be")
        be = self._be(subject)
        if self.chance(0.2):
            text = f"{be} {subject.subject} {adjective.english}"
            return self._asked(f"{subject.chinese}{adjective.chinese}吗", text, combinations)
        degree, word = self.pick(
            (("很", ""), ("很", ""), ("不", "not"), ("非常", "very"), ("太", "too"), ("也很", "also"))
        )
        chinese = f"{subject.chinese}{degree}{adjective.chinese}{'了' if degree == '太' else ''}。"
        text = f"{subject.subject} {be} {word} {adjective.english}".replace("  ", " ")
        return Derivation(chinese, sentence(text), combinations)

    @staticmethod
    def _be(subject: Phrase) -> str:
        return ("am", "are", "is", "are", "are", "are")[subject.person]

    def _relative(self) -> Derivation:
        """我昨天买的书很贵: the clause comes before its noun, joined by 的."""
        verb = self.pick(_WRITTEN)
        noun = self.pick(verb.objects)
        if noun.sort not in PREDICATE or noun.sort == "person":
            return self._relative()
        time = self.pick(EARLIER) if self.chance(0.35) else ("", "")
        clause = Clause(self._subject(), verb, MOODS["past"], time=time)
        adjective = self.pick(PREDICATE[noun.sort])
        negative = self.chance(0.2)
        degree = "不" if negative else "很"
        chinese = f"{clause.subject.chinese}{time[0]}{verb.chinese}的{noun.chinese}{degree}{adjective.chinese}。"
        text = f"the {noun.english} that {clause.english()} is {'not ' if negative else ''}{adjective.english}"
        combinations = (
            f"{verb.english.name}+{noun.english}",
            f"{adjective.english}+{noun.english}",
            *clause.name("that"),
        )
        return Derivation(chinese, sentence(text), combinations)

    def _being(self) -> Derivation:
        """是 with a noun: English needs an article or a plural."""
        subject = self.pick((*PRONOUNS, *NAMES)) if self.chance(0.6) else self._subject()
        noun = self.pick(SORTS["person"])
        if noun.english == subject.key:
            return self._being()
        words = noun.plural if subject.person > 2 else english.with_article(noun.english)
        combinations = (*subject.combinations, f"{subject.key}+be+{noun.english}")
        if self.chance(0.25):
            text = f"{self._be(subject)} {subject.subject} {words}"
            return self._asked(f"{subject.chinese}是{noun.chinese}吗", text, combinations)
        negative = self.chance(0.25)
        text = f"{subject.subject} {self._be(subject)} {'not ' if negative else ''}{words}"
        return Derivation(
            f"{subject.chinese}{'不' if negative else ''}是{noun.chinese}。", sentence(text), combinations
        )

    def _there_is(self) -> Derivation:
        noun = self.pick(SORTS[self.pick(("reading", "food", "drink", "clothes", "thing", "animal"))])
        place = self.pick(ON_OR_IN)
        phrase = self._noun_phrase(noun, ("一", "#", "#"))
        be = "are" if phrase.person == 5 else "is"
        combinations = (*phrase.combinations, f"{noun.english}+{place[1]}")
        if self.chance(0.25):
            return self._asked(
                f"{place[0]}有{phrase.chinese}吗", f"{be} there {phrase.object} {place[1]}", combinations
            )
        return Derivation(
            f"{place[0]}有{phrase.chinese}。", sentence(f"there {be} {phrase.object} {place[1]}"), combinations
        )

    def _comparing(self) -> Derivation:
        one = self._described()
        sorts = ("person", "kin") if one.sort in ("person", "kin") else (one.sort,)
        other = (
            self._subject() if len(sorts) == 2 else self._noun_phrase(self.pick(SORTS[one.sort]), DEFINITE, adjective=0)
        )
        if other.key == one.key:
            return self._comparing()
        adjective = self.pick(PREDICATE[one.sort])
        text = f"{one.subject} {self._be(one)} {adjective.comparative} than {other.object}"
        combinations = (
            *one.combinations,
            *other.combinations,
            f"{adjective.english}+{one.key}",
            f"{one.key}+than+{other.key}",
        )
        return Derivation(f"{one.chinese}比{other.chinese}{adjective.chinese}。", sentence(text), combinations)

    def _age(self) -> Derivation:
        subject = self._subject()
        combinations = (*subject.combinations, f"{subject.key}+years old")
        if self.chance(0.2):
            return self._asked(f"{subject.chinese}多大", f"how old {self._be(subject)} {subject.subject}", combinations)
        years = 2 + int(self._random() * 98)
        text = f"{subject.subject} {self._be(subject)} {english.number(years)} years old"
        return Derivation(f"{subject.chinese}{number(years, True)}岁。", sentence(text), combinations)

    def _price(self) -> Derivation:
        sort = self.pick(("reading", "food", "drink", "clothes", "thing"))
        subject = self._noun_phrase(self.pick(SORTS[sort]), ("这", "这", "那"), adjective=0.3)
        combinations = (*subject.combinations, f"{subject.key}+cost")
        if self.chance(0.3):
            return self._asked(f"{subject.chinese}多少钱", f"how much does {subject.subject} cost", combinations)
        price = 2 + int(self._random() * 98)
        text = f"{subject.subject} costs {english.number(price)} yuan"
        return Derivation(f"{subject.chinese}{number(price, True)}块钱。", sentence(text), combinations)

    def _loving(self) -> Derivation:
        clause = self._with_object(Clause(self._subject(), _LOVE, MOODS["present"], negative=self.chance(0.2)))
        return self._told(clause)
