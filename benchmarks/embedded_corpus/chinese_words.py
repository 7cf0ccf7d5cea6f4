"""The Chinese-English lexicon: nouns with their measure words, adjectives, verbs with what they take."""

from typing import NamedTuple

from . import english


class Noun(NamedTuple):
    """A noun and its measure word; `container` is the English of a measure that counts what has no plural (`cup`)."""

    chinese: str
    measure: str
    english: str
    plural: str
    sort: str
    container: str = ""


def _nouns(sort: str, table: str) -> tuple[Noun, ...]:
    """Entries `书 本 book`, `孩子 个 child/children`, `茶 杯:cup tea`, and `面包 - bread` for what is not counted."""
    found = []
    for entry in table.split(";"):
        chinese, measure, word = entry.strip().split(maxsplit=2)
        measure, _, container = measure.partition(":")
        singular, _, irregular = word.partition("/")
        counted = measure != "-" and not container
        many = (irregular or english.plural(singular)) if counted else ""
        found.append(Noun(chinese, measure.strip("-"), singular, many, sort, container))
    return tuple(found)


SORTS: dict[str, tuple[Noun, ...]] = {
    sort: _nouns(sort, table)
    for sort, table in {
        "person": "老师 位 teacher; 学生 个 student; 医生 位 doctor; 孩子 个 child/children; 警察 个 police officer;"
        "司机 个 driver; 客人 位 guest; 作家 位 writer; 男孩 个 boy; 女孩 个 girl",
        "kin": "妈妈 - mother; 爸爸 - father; 哥哥 - older brother; 姐姐 - older sister; 弟弟 - younger brother;"
        "妹妹 - younger sister; 爷爷 - grandfather; 奶奶 - grandmother; 朋友 - friend",
        "animal": "狗 只 dog; 猫 只 cat; 鸟 只 bird; 马 匹 horse; 牛 头 cow; 兔子 只 rabbit",
        "reading": "书 本 book; 报纸 份 newspaper; 信 封 letter; 小说 本 novel;"
        "杂志 本 magazine; 词典 本 dictionary/dictionaries",
        "film": "电影 部 movie; 电视剧 部 TV series/TV series",
        "food": "苹果 个 apple; 鸡蛋 个 egg; 橙子 个 orange; 饺子 个 dumpling; 包子 个 bun;"
        "蛋糕 块:piece cake; 土豆 个 potato",
        "dish": "面包 - bread; 米饭 - rice; 牛肉 - beef; 鸡肉 - chicken",
        "drink": "茶 杯:cup tea; 咖啡 杯:cup coffee; 水 杯:glass water; 牛奶 杯:glass milk; 啤酒 瓶:bottle beer;"
        "苹果汁 杯:glass apple juice; 橙汁 杯:glass orange juice",
        "clothes": "衬衫 件 shirt; 毛衣 件 sweater; 裙子 条 skirt; 帽子 顶 hat; 大衣 件 coat",
        "thing": "桌子 张 table; 椅子 把 chair; 床 张 bed; 电脑 台 computer; 手机 部 phone; 笔 支 pen;"
        "自行车 辆 bicycle;"
        "汽车 辆 car; 杯子 个 cup; 伞 把 umbrella; 地图 张 map; 照片 张 photo; 票 张 ticket; 书包 个 school bag",
        "sound": "音乐 - music; 歌 首 song",
        "subject": "中文 - Chinese; 英语 - English; 法语 - French; 德语 - German; 数学 - math; 历史 - history",
    }.items()
}
NOUNS: dict[str, Noun] = {noun.chinese: noun for nouns in SORTS.values() for noun in nouns}


class Adjective(NamedTuple):
    """An adjective; one of two syllables takes 的 before its noun."""

    chinese: str
    english: str
    comparative: str

    @property
    def before_noun(self) -> str:
        return self.chinese if len(self.chinese) == 1 else self.chinese + "的"


ADJECTIVES: dict[str, Adjective] = {
    chinese: Adjective(chinese, word, comparative)
    for chinese, word, comparative in (
        ("大", "big", "bigger"),
        ("小", "small", "smaller"),
        ("新", "new", "newer"),
        ("旧", "old", "older"),
        ("红", "red", ""),
        ("黑", "black", ""),
        ("白", "white", ""),
        ("贵", "expensive", "more expensive"),
        ("热", "hot", "hotter"),
        ("长", "long", "longer"),
        ("高", "tall", "taller"),
        ("忙", "busy", "busier"),
        ("累", "tired", "more tired"),
        ("便宜", "cheap", "cheaper"),
        ("漂亮", "beautiful", "more beautiful"),
        ("好吃", "delicious", "more delicious"),
        ("好喝", "tasty", "tastier"),
        ("有意思", "interesting", "more interesting"),
        ("新鲜", "fresh", "fresher"),
        ("年轻", "young", "younger"),
        ("聪明", "clever", "cleverer"),
        ("高兴", "happy", "happier"),
        ("友好", "friendly", "friendlier"),
    )
}


def _adjectives(table: dict[str, str]) -> dict[str, tuple[Adjective, ...]]:
    return {sort: tuple(ADJECTIVES[word] for word in words.split()) for sort, words in table.items()}


BEFORE_NOUN = _adjectives(
    {
        "person": "年轻 聪明 高兴 友好",
        "animal": "大 小 黑 白 漂亮 聪明",
        "reading": "新 旧 便宜 有意思",
        "film": "新 有意思",
        "food": "大 小 新鲜 好吃 便宜",
        "dish": "新鲜 好吃 便宜",
        "drink": "热 好喝 便宜",
        "clothes": "新 旧 红 黑 白 漂亮 便宜",
        "thing": "大 小 新 旧 红 黑 白 漂亮 便宜",
    }
)
PREDICATE = _adjectives(
    {
        "person": "高 忙 累 年轻 聪明 高兴 友好",
        "kin": "高 忙 累 年轻 聪明 高兴 友好",
        "animal": "大 小 漂亮 聪明 累",
        "reading": "新 旧 长 贵 便宜 有意思",
        "film": "新 长 有意思",
        "food": "大 小 新鲜 好吃 贵 便宜",
        "dish": "新鲜 好吃 贵 便宜",
        "drink": "热 好喝 贵 便宜",
        "clothes": "新 旧 长 大 小 漂亮 贵 便宜",
        "thing": "大 小 新 旧 漂亮 贵 便宜",
    }
)


class Verb(NamedTuple):
    """A verb with its objects; a stative one takes neither 了 nor a modal. `people`: pronouns are objects too."""

    chinese: str
    english: english.Verb
    objects: tuple[Noun, ...] = ()
    people: bool = False
    stative: bool = False


def _verb(chinese: str, words: str, objects: str = "", *, stative: bool = False) -> Verb:
    nouns: list[Noun] = []
    for name in objects.split():
        nouns += SORTS[name] if name in SORTS else [NOUNS[name]]
    return Verb(chinese, english.verb(words), tuple(nouns), "person" in objects.split(), stative)


TRANSITIVE = (
    _verb("看", "read read read", "reading"),
    _verb("看", "watch", "film"),
    _verb("写", "write wrote written", "信 小说 书"),
    _verb("吃", "eat ate eaten", "food dish"),
    _verb("喝", "drink drank drunk", "drink"),
    _verb("买", "buy bought bought", "reading food dish drink clothes thing"),
    _verb("卖", "sell sold sold", "reading food dish clothes thing"),
    _verb("找", "look+for", "person animal reading thing"),
    _verb("看见", "see saw seen", "person animal thing"),
    _verb("用", "use", "电脑 手机 笔 词典 杯子 伞 地图"),
    _verb("听", "listen+to", "sound"),
    _verb("学", "study", "subject"),
    _verb("教", "teach taught taught", "subject"),
    _verb("洗", "wash", "clothes 杯子 汽车 狗 苹果 土豆"),
    _verb("做", "make made made", "饺子 包子 蛋糕 面包"),
    _verb("画", "draw drew drawn", "animal person 桌子 汽车"),
    _verb("等", "wait+for", "person"),
    _verb("帮助", "help", "person"),
    _verb("问", "ask", "person"),
    _verb("喜欢", "like", "animal reading film food drink clothes sound subject", stative=True),
    _verb("认识", "know knew known", "person", stative=True),
    _verb("需要", "need", "thing reading food drink", stative=True),
)
OWN = _verb("有", "have had had", "animal reading clothes thing", stative=True)
GIVING = (
    _verb("给", "give gave given", "reading food drink thing clothes"),
    _verb("送", "send sent sent", "reading clothes thing"),
)
INTRANSITIVE = (
    _verb("睡觉", "sleep slept slept"),
    _verb("起床", "get|up got gotten"),
    _verb("工作", "work"),
    _verb("学习", "study"),
    _verb("唱歌", "sing sang sung"),
    _verb("跳舞", "dance"),
    _verb("游泳", "swim swam swum"),
    _verb("跑步", "run ran run"),
    _verb("做饭", "cook"),
    _verb("休息", "rest"),
    _verb("笑", "laugh"),
    _verb("哭", "cry"),
)
BY_CHINESE: dict[str, Verb] = {verb.chinese: verb for verb in (*TRANSITIVE, *INTRANSITIVE)}
GO = _verb("去", "go went gone")

PLACES = (
    # Chinese, where one is, where one goes
    ("学校", "at school", "to school"),
    ("商店", "at the store", "to the store"),
    ("公园", "in the park", "to the park"),
    ("医院", "at the hospital", "to the hospital"),
    ("图书馆", "in the library", "to the library"),
    ("饭馆", "at the restaurant", "to the restaurant"),
    ("北京", "in Beijing", "to Beijing"),
    ("上海", "in Shanghai", "to Shanghai"),
)
HOME = ("家", "at home", "home")
ON_OR_IN = (
    ("桌子上", "on the table"),
    ("椅子上", "on the chair"),
    ("床上", "on the bed"),
    ("书包里", "in the school bag"),
    ("房间里", "in the room"),
    ("房子里", "in the house"),
    ("车里", "in the car"),
)
