"""Sentences of a text, told by rules: where one ends, in characters of the text, which stays as it is.

A mark that may end a sentence (`. ! ? …`, and those of other scripts) does so unless its surroundings speak against it:
an abbreviation, an initial, an ordinal number, a small letter after it. Chinese and Japanese marks need no space behind
them. Thai and Lao have no mark at all: a text of theirs is one sentence, cut at line breaks and at `!` and `?` only.
"""

import functools
import re
from typing import NamedTuple

from dragoman.languages.codes import language_of


class Span(NamedTuple):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


def sentences(text: str, language: str = "") -> list[Span]:
    """The sentences of a text, without the white space around them, in order.

    `language`: its code, which decides on abbreviations and ordinals; without one, those of all languages count.

    >>> text = "Dr. Maier kam am 3. Mai. Er ging!  Wann?"
    >>> [text[start:end] for start, end in sentences(text, "de")]
    ['Dr. Maier kam am 3. Mai.', 'Er ging!', 'Wann?']
    """
    rules = _rules_of(language)
    found: list[Span] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if match.end() > start and rules.ends(text, start, match):
            found.append(_trimmed(text, start, match.end()))
            start = match.end()
    found.append(_trimmed(text, start, len(text)))
    return [span for span in found if span.start < span.end]


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return Span(start, max(start, start + len(piece.strip())))


_CLOSING = "\"'”’»›“‘)\\]}」』）】〉》＂"
_WIDE = "。！？｡．"
_WIDE_CLOSING = "\"'”’\\]）」』】〉》＂"
_WIDE_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff「『"
_DANDAS = "।॥؟۔።፧፨။។៕՜՞։"
# Runs are bounded, so that a megabyte of marks takes linear time.
_CANDIDATE = re.compile(
    rf"(?:[{_WIDE}]|[!?](?=[{_WIDE_LETTER}]))[{_WIDE}!?…]{{0,20}}[{_WIDE_CLOSING}]{{0,5}}"  # no space is needed
    rf"|[.!?…{_DANDAS}][.!?…{_DANDAS}]{{0,20}}(?:\s(?=[»›]))?[{_CLOSING}]{{0,5}}(?:\[\d{{1,3}}\]){{0,3}}(?=\s|$)"
    r"|[^\S\n]*\n\s*\n|[\r\n\u2028\u2029]+"
)
_BLANK = re.compile(r"\s*")
_OPENING = re.compile(r"[\"'“‘«‹„‚(\[{¿¡「『（【〈《*_\-–—•\s]*")
_LAST_WORD = re.compile(r"(?:[^\W_]|[.’'\-·/&])+$")


class _Rules:
    """The rules of a language."""

    def __init__(self, language: str) -> None:
        known = language_of(language) if language else ""
        every = [words.split() for words in ABBREVIATIONS.values()]
        own = ABBREVIATIONS.get(known)
        lists = [ABBREVIATIONS["any"].split(), own.split()] if own is not None else every
        self.abbreviations = {word.lower().rstrip(".") for words in lists for word in words}
        self.final = {word.lower().rstrip(".") for word in FINAL.split()}
        self.starters = set(" ".join([STARTERS[known]] if known in STARTERS else STARTERS.values()).split())
        self.ordinals = known in ORDINALS or own is None
        self.is_cased_noun = known == "de"

    def ends(self, text: str, start: int, match: re.Match[str]) -> bool:
        """True if the sentence that begins at `start` ends with the marks that `match` found."""
        mark = match.group()
        if mark[0].isspace() or mark[0] in "\u2028\u2029" + _DANDAS:
            return True
        blank = _BLANK.match(text, match.end())
        assert blank is not None
        if blank.end() == len(text):
            return False  # nothing comes after it
        if mark[0] in _WIDE or blank.end() == match.end():
            return text[match.end()] not in "，、；：,;:）」』】》〉”’" and not _goes_on_after_quote(text, match)
        opening = _OPENING.match(text, match.end())
        assert opening is not None
        following = text[opening.end() : opening.end() + 40]
        if following[:1].islower() or following[:1] in (*".,;:!?&+",):
            return False
        if "\n" in blank.group() and blank.group().count("\n") > 1:
            return True
        if mark[0] in "!?":
            return not _in_brackets(text, start, match)
        if mark[0] == "…" or mark.startswith(".."):
            return following[:1].isupper() and not set(opening.group()) & set("-–—•*_")
        return self._full_stop_ends(text, start, match, following)

    def _full_stop_ends(self, text: str, start: int, match: re.Match[str], following: str) -> bool:
        before = text[max(start, match.start() - 40) : match.start()]
        found = _LAST_WORD.search(before)
        word = found.group() if found else ""
        if len(match.group()) > 1 and match.group()[1] in _CLOSING and _is_alone(text, start, match):
            return False
        next_word = re.match(r"[^\W\d_]*", following)
        starts = next_word is not None and next_word.group() in self.starters
        if not word:
            return bool(before.strip())
        if not text[start : match.start() - len(word)].strip() and re.fullmatch(
            r"\d{1,3}|[A-Za-z]|[ivxIVX]{1,4}", word
        ):
            return False  # "1. Open the file": the number of an item
        lowered = word.lower()
        last = re.split(r"[.\-’'/]", lowered)[-1]
        if len(word) == 1 and word.isalpha() and word.isupper():
            return starts and not _after_initial(before[: -len(word)])
        if re.fullmatch(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}", word):  # e.g, z.B, U.S, a.m
            return starts and (lowered not in self.abbreviations or lowered in self.final)
        if lowered in ("г", "гг"):  # a year's, which may end a sentence; a town's does not
            return re.search(r"\d\s*$", before[: -len(word)]) is not None
        if lowered in self.abbreviations or (last in self.abbreviations and last != lowered and len(last) > 1):
            may_be_name = self.is_cased_noun or lowered in NAMED  # what has a capital may be a name's next word
            return lowered in self.final and (starts or (following[:1].isupper() and not may_be_name))
        if self.is_cased_noun and len(word) == 1 and word.isalpha():  # "z. B.", "d. h."
            return False
        if self.ordinals and re.fullmatch(r"\d{1,2}|[IVX]{1,5}", word):
            return starts
        return True


@functools.cache
def _rules_of(language: str) -> _Rules:
    return _Rules(language)


def _goes_on_after_quote(text: str, match: re.Match[str]) -> bool:
    """True for 「好。」と: a quotation of a sentence that goes on."""
    return match.group()[-1] in "」』”" and text[match.end() : match.end() + 1] in tuple("とという说道")


def _is_alone(text: str, start: int, match: re.Match[str]) -> bool:
    """True where the mark stands by itself in brackets or quotes: "the full stop (.) ends it"."""
    return match.start() > start and text[match.start() - 1] in "(\"'“‘«「"


def _in_brackets(text: str, start: int, match: re.Match[str]) -> bool:
    """True for a mark alone in brackets: "he came (!) Tuesday"."""
    return match.start() > start and text[match.start() - 1] in "([" and match.group()[-1:] in ")]"


def _after_initial(before: str) -> bool:
    return re.search(r"(?:^|\s)[^\W\d_]\.\s*$", before) is not None


ORDINALS = frozenset({
    "az", "bs", "cs", "da", "de", "dsb", "et", "eu", "fi", "hr", "hsb", "hu", "is", "ka", "lb", "lv", "mk", "nb", "nn",
    "no", "pl", "sk", "sl", "sq", "sr", "tr",
})  # fmt: skip
"""Languages that write the third as "3."."""

ABBREVIATIONS: dict[str, str] = {
    "any": (
        "dr prof mr mrs ms st jr sr vs etc e.g i.e a.m p.m no vol fig p pp ed eds al cf ca op ltd inc co corp "
        "tel nr ph.d"
    ),
    "en": (
        "mr mrs ms dr prof sr jr st rev hon gen col capt lt sgt maj gov sen rep pres supt insp mt ft ave blvd "
        "rd dept univ assn bros inc ltd co corp e.g i.e viz cf al ibid vs v etc approx est dist appt apt no "
        "nos fig figs vol pp p ch sec eq ed eds esp incl excl max min misc temp a.m p.m jan feb mar apr jun "
        "jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri messrs mme mlle ca ph.d m.d b.a m.a "
        "u.s u.k u.n d.c art"
    ),
    "de": (
        "abb abg abs abt adr allg anm art aufl ausg b bd bde bearb begr beil bes betr bez bezgl bgbl bspw "
        "bzgl bzw ca chr d dgl d.h dipl dr ing ebd eigtl einschl elektr entspr erg etc etw ev evtl exkl f ff "
        "fr frl gal geb gegr gem gen ggf ggü gr habil hptst hr hrn hrsg i.d.r inkl insb insbes jh jhd jhs jr "
        "kap kath kfm kl lat lfd mag max med mill min mind mio mrd mtl n nachf nat nördl nr o o.ä o.g op orig "
        "österr p pfd phil pkt pol prof rd red reg rel resp rer s s.o s.u sen sog sr st std stellv str südl "
        "tab tel u u.a u.ä u.u ugs usf usw v v.a v.chr verf vgl vol vorm vors vs wg z z.b z.t z.zt zit zt zz "
        "zzgl jan feb mär apr jun jul aug sep sept okt nov dez mo di mi do sa so bsp hl päd pharm soz theol "
        "jur rh m.a ph.d"
    ),
    "fr": (
        "m mm mme mmes mlle mlles me dr pr prof st ste mgr av apr env etc ex fig cf p pp vol éd éds chap art "
        "réf tél no nos janv févr avr juil sept oct nov déc lun mar mer jeu ven sam dim bd boul pl al op cit "
        "ibid id hab max min j.-c"
    ),
    "es": (
        "sr sra srta sres dr dra prof profa d dª dña ud uds vd vds etc pág págs p ej núm n.º art cap fig vol "
        "ed eds av avda c cía tel a.c d.c ee.uu aprox máx mín gral ing lic arq st sto sta ene feb mar abr may "
        "jun jul ago sep sept oct nov dic"
    ),
    "pt": (
        "sr sra srs srta dr dra prof profa eng exmo exma d etc pág págs p ex núm n art cap fig vol ed av r "
        "tel a.c d.c aprox máx mín jan fev mar abr mai jun jul ago set out nov dez ltda cia s.a"
    ),
    "it": (
        "sig sigg sig.ra dott dott.ssa prof prof.ssa ing avv arch on rev ecc es p pp pag pagg cap fig vol art "
        "n nn tel ed al cfr v vs ca a.c d.c s s.p.a max min gen feb mar apr mag giu lug ago set ott nov dic"
    ),
    "nl": (
        "dhr mevr mw dr drs prof ir ing mr jr sr st bijv bv b.v n.v nl d.w.z d.m.v o.a e.d enz etc evt excl "
        "incl i.p.v m.b.t m.i.v max min nr blz p pag par ca resp t.a.v t.o.v vgl zgn z.g tel vol v.chr n.chr "
        "jan feb mrt apr jun jul aug sep okt nov dec"
    ),
    "cs": (
        "p pí sl dr mgr ing prof doc bc mudr judr phdr rndr csc phd např apod atd aj tj tzv resp popř příp "
        "event č čp str s sv r hod min max odst obr tab kap roč ul nám n.l př.n.l tis mil mld kč st ml vyd ed "
        "red srov cca vč zejm"
    ),
    "sk": (
        "p dr mgr ing prof doc bc napr apod atď tj tzv resp príp č str s sv r hod min max obr tab kap ul nám "
        "tis mil mld cca"
    ),
    "pl": (
        "p pan dr inż mgr prof doc hab np itp itd tj tzn tzw m.in ok zob por św ul al pl nr str s r w wyd red "
        "tab rys godz min tys mln mld ks gen płk kpt im ds pt ww br"
    ),
    "ru": (
        "г гг в вв им ул д кв стр с рис табл гл т тт п пп ст проф акад доц д-р г-н г-жа т.е т.к т.д т.п т.н "
        "и.о н.э напр др пр см ср руб коп тыс млн млрд чел обл р-н тел изд ред янв фев мар апр июн июл авг "
        "сент окт нояб дек"
    ),
    "uk": (
        "р рр ст м вул буд кв с стор рис табл гл т п пп проф акад доц ім т.д т.п т.зв н.е напр др ін див пор "
        "грн коп тис млн млрд обл тел вид ред"
    ),
    "sv": (
        "bl.a d.v.s dvs t.ex t.o.m fr.o.m m.m m.fl o.s.v osv s.k kl ca nr s st tel jfr resp inkl exkl max min "
        "dr prof f.d e.kr f.kr"
    ),
    "da": (
        "bl.a d.v.s dvs f.eks fx m.m m.fl o.s.v osv s.k kl ca nr s tel jf resp inkl ekskl maks min dr prof "
        "f.kr e.kr pga ifm mht mv"
    ),
    "nb": (
        "bl.a d.v.s dvs f.eks m.m m.fl o.s.v osv s.k kl ca nr s tel jf resp inkl ekskl maks min dr prof f.kr "
        "e.kr pga ifm mht mv"
    ),
    "fi": "esim ks mm ym yms jne eli so ts nk n klo kk s puh os v prof tri dr ent toim eaa jaa eKr jKr",
    "hu": (
        "dr prof ifj id özv pl ill stb ún kb old o sz u tel min max vö ld jan febr márc ápr máj jún júl aug "
        "szept okt nov dec"
    ),
    "ro": (
        "dl dna d-l d-na dr prof ing etc ex nr pag p str bd art cap fig vol al tel max min ian feb mar apr "
        "iun iul aug sept oct nov dec"
    ),
    "tr": "dr prof doç av sn vb vs örn yy no s sf cad sok mah tel mr alb gen bkz krş çev yay",
    "el": "κ κα κος δρ καθ κ.λπ κ.ά κ.τ.λ π.χ δηλ βλ σελ αρ τηλ μ.χ οδ λεωφ",
    "ca": "sr sra dr dra prof etc pàg pàgs p ex núm art cap fig vol ed av tel aprox màx mín a.c d.c",
    "gl": "sr sra dr dra prof etc páx páxs p ex núm art cap fig vol ed av tel aprox máx mín a.c d.c",
    "eu": "jn and dr prof etab abar adib ik or orr zk zb k.a k.o a.k tel gehi gutx",
    "vi": "tp ths ts pgs gs bs ks tr vd v.v v.v.v q p đ",
}
"""Words before a full stop that does not end the sentence, by language."""

FINAL = (
    "etc. usw. usf. a.m. p.m. inc. ltd. co. corp. jr. sr. ph.d. u.s. u.k. d.c. u.n. al. ecc. enz. osv. "
    "atd. itd. itp. jne. stb. o.ä. u.ä. v.chr. n.chr. m.a. v.v. vb. и.т.д. т.д. т.п. др.  b.c. a.d. "
    "kč"
)
"""Abbreviations that may stand at the end of a sentence."""

NAMED = frozenset({"inc", "ltd", "co", "corp", "jr", "sr"})
"""Abbreviations that names may go on after: "Acme Inc. USA", "Martin Luther King Jr. Day"."""

STARTERS: dict[str, str] = {
    "en": (
        "The This That These Those It He She We They You I A An In On At If When While As But And Or So For "
        "From With To There Here His Her Their Our My Your Its Not No After Before Since Because Although "
        "However What Who Where Why How Use Click Choose Select Enter Open Press Then Both Some Many Most "
        "Each All One Two Another Other By Is Are Was Do Does Did"
    ),
    "de": (
        "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Wir Ihr Ich Man Dieser Diese Dieses "
        "Diesen Diesem Jener Jene In Im Am An Auf Aus Bei Beim Mit Nach Von Vom Vor Zu Zum Zur Für Durch Über "
        "Unter Um Als Wenn Weil Da Dass Daß Ob Und Oder Aber Doch Denn Auch Nur Noch So Dann Dort Hier Heute "
        "Jetzt Nun Nicht Kein Keine Was Wer Wie Wo Warum Wann Sein Seine Ihre Ihren Unser Mein Dein Beide "
        "Alle Viele Einige Zwei Drei Während Nachdem Bevor Seit Seitdem Danach Dabei Dazu Damit Dafür Deshalb "
        "Daher Trotzdem Jedoch Außerdem Zudem Ist Sind War Hat Haben Wird Werden Klicken Wählen Geben Öffnen "
        "Sobald Falls Obwohl Diesmal Später Zuvor Zuletzt Anschließend Ebenso Ebenfalls"
    ),
    "fr": (
        "Le La Les Un Une Des Il Elle Ils Elles On Nous Vous Je Ce Cette Ces Cet C Cela Dans En Sur Sous Par "
        "Pour Avec Sans Au Aux À De Du Et Mais Ou Donc Or Si Quand Lorsque Comme Après Avant Depuis Pendant "
        "Son Sa Ses Leur Leurs Notre Votre Mon Ma Mes Qui Que Quoi Où Comment Pourquoi Deux Trois Plusieurs "
        "Tous Toutes Chaque Ne Ainsi Alors Puis Selon L D J"
    ),
    "es": (
        "El La Los Las Un Una Unos Unas Él Ella Ellos Ellas Yo Nosotros Usted Este Esta Estos Estas Ese Esa "
        "Esto En De Del Al A Por Para Con Sin Sobre Y Pero O Si Cuando Como Después Antes Su Sus Mi No Se Lo "
        "Le Qué Quién Dónde Cómo Hay Es"
    ),
    "pt": (
        "O A Os As Um Uma Ele Ela Eles Elas Eu Nós Você Este Esta Esse Essa Isto Em No Na De Do Da Por Para "
        "Com Sem Sobre E Mas Ou Se Quando Como Depois Antes Seu Sua Não Que Quem Onde É"
    ),
    "it": (
        "Il Lo La I Gli Le Un Uno Una Lui Lei Noi Voi Loro Io Questo Questa Questi Queste In Nel Nella Di Del "
        "Della Da Dal A Al Alla Per Con Senza Su E Ma O Se Quando Come Dopo Prima Suo Sua Non Che Chi Dove È "
        "C L Si"
    ),
    "nl": (
        "De Het Een Hij Zij Ze Wij We Ik Je U Jullie Dit Dat Deze Die In Op Aan Bij Met Van Voor Na Naar Te "
        "En Maar Of Als Toen Omdat Want Er Hier Daar Niet Geen Wat Wie Waar Hoe Zijn Haar Hun Ons Mijn"
    ),
    "cs": (
        "Ten Ta To Tento Tato Toto On Ona Ono Oni My Vy Já V Ve Na Z Ze Do S Se Po Při Pro Od U K A Ale Nebo "
        "Když Pokud Protože Jak Kdo Co Kde Proč Jeho Její Jejich Není Je Byl Byla"
    ),
}
"""Words that, with a capital, nearly always begin a sentence."""
