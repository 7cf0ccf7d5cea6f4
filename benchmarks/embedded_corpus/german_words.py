"""The German-English lexicon: nouns, adjectives and verbs with the forms that do not follow a rule."""

import re
from typing import NamedTuple

from . import english


class Noun(NamedTuple):
    """A noun; a mass noun has no plural. Weak nouns (`den Jungen`) take their plural form outside the nominative."""

    gender: str  # m, f or n
    singular: str
    plural: str
    english: str
    english_plural: str
    sort: str
    weak: bool


_WEAK = {"Junge", "Nachbar", "Student"}
_GENDER = {"der": "m", "die": "f", "das": "n"}
_ENTRY = re.compile(r"(der|die|das) (\w+)(?:/(\w+))? = ([\w ]+)(?:/([\w ]+))?")

_NOUNS = {
    "person": """
        der Mann/Männer = man/men; die Frau/Frauen = woman/women; das Kind/Kinder = child/children;
        der Junge/Jungen = boy; das Mädchen/Mädchen = girl; der Lehrer/Lehrer = teacher; der Arzt/Ärzte = doctor;
        der Student/Studenten = student; der Freund/Freunde = friend; der Bruder/Brüder = brother;
        die Schwester/Schwestern = sister; die Mutter/Mütter = mother; der Vater/Väter = father;
        der Nachbar/Nachbarn = neighbor; der Gast/Gäste = guest; die Tante/Tanten = aunt; der Onkel/Onkel = uncle;
        die Großmutter/Großmütter = grandmother; der Großvater/Großväter = grandfather""",
    "animal": """
        der Hund/Hunde = dog; die Katze/Katzen = cat; das Pferd/Pferde = horse; der Vogel/Vögel = bird;
        die Maus/Mäuse = mouse/mice; die Kuh/Kühe = cow""",
    "text": """
        das Buch/Bücher = book; der Brief/Briefe = letter; die Zeitung/Zeitungen = newspaper;
        die Geschichte/Geschichten = story; das Gedicht/Gedichte = poem; das Kochbuch/Kochbücher = cookbook;
        das Wörterbuch/Wörterbücher = dictionary""",
    "food": """
        der Apfel/Äpfel = apple; die Birne/Birnen = pear; das Ei/Eier = egg; die Tomate/Tomaten = tomato;
        die Kartoffel/Kartoffeln = potato; die Kirsche/Kirschen = cherry""",
    "dish": """das Brot = bread; der Käse = cheese; der Reis = rice; das Fleisch = meat""",
    "drink": """
        die Milch = milk; das Wasser = water; der Kaffee = coffee; der Tee = tea; der Wein = wine; das Bier = beer""",
    "clothes": """
        der Hut/Hüte = hat; das Kleid/Kleider = dress; das Hemd/Hemden = shirt; der Mantel/Mäntel = coat;
        der Schuh/Schuhe = shoe; die Jacke/Jacken = jacket""",
    "thing": """
        der Tisch/Tische = table; der Stuhl/Stühle = chair; die Lampe/Lampen = lamp; das Bild/Bilder = picture;
        die Tasche/Taschen = bag; der Ball/Bälle = ball; der Schlüssel/Schlüssel = key; die Uhr/Uhren = clock;
        das Fahrrad/Fahrräder = bicycle; das Auto/Autos = car""",
    "place": """
        das Haus/Häuser = house; die Tür/Türen = door; das Fenster/Fenster = window; das Zimmer/Zimmer = room;
        die Küche/Küchen = kitchen; der Garten/Gärten = garden""",
}

_COMPOUNDS = (
    # first parts (German, English), then heads: every first part with every head; gender and plural are the head's
    (
        (("Apfel", "apple"), ("Birnen", "pear"), ("Kirsch", "cherry"), ("Tomaten", "tomato")),
        "Saft = juice",
        "m",
        "drink",
    ),
    ((("Tomaten", "tomato"), ("Kartoffel", "potato"), ("Käse", "cheese")), "Suppe = soup", "f", "dish"),
    ((("Apfel", "apple"), ("Birnen", "pear"), ("Kirsch", "cherry")), "Kuchen/Kuchen = cake", "m", "food"),
    ((("Küchen", "kitchen"), ("Garten", "garden")), "Tisch/Tische = table", "m", "thing"),
    ((("Küchen", "kitchen"), ("Garten", "garden")), "Stuhl/Stühle = chair", "m", "thing"),
    ((("Küchen", "kitchen"), ("Tisch", "table")), "Lampe/Lampen = lamp", "f", "thing"),
    ((("Auto", "car"), ("Haus", "house")), "Schlüssel/Schlüssel = key", "m", "thing"),
    ((("Schul", "school"),), "Tasche/Taschen = bag", "f", "thing"),
    ((("Garten", "garden"), ("Küchen", "kitchen")), "Tür/Türen = door", "f", "place"),
)
_ARTICLE = {gender: article for article, gender in _GENDER.items()}


def _noun(entry: str, sort: str) -> Noun:
    match = _ENTRY.fullmatch(entry.strip())
    assert match is not None, entry
    article, singular, plural, word, words = match.groups()
    words = (words or english.plural(word)) if plural else ""
    return Noun(_GENDER[article], singular, plural or "", word, words, sort, singular in _WEAK)


def _compounds() -> dict[str, Noun]:
    found = {}
    for firsts, head, gender, sort in _COMPOUNDS:
        german, word = head.split(" = ")
        for first, first_word in firsts:
            joined = "/".join(first + form.lower() for form in german.split("/"))
            noun = _noun(f"{_ARTICLE[gender]} {joined} = {first_word} {word}", sort)
            found[noun.singular] = noun
    return found


NOUNS: dict[str, Noun] = {
    noun.singular: noun
    for noun in [_noun(entry, sort) for sort, entries in _NOUNS.items() for entry in entries.split(";")]
} | _compounds()
"""Every noun, by its singular."""

SORTS: dict[str, tuple[Noun, ...]] = {sort: tuple(n for n in NOUNS.values() if n.sort == sort) for sort in _NOUNS}


class Adjective(NamedTuple):
    """An adjective: as a predicate, before an ending, as a comparative."""

    german: str
    stem: str
    comparative: str
    english: str
    english_comparative: str


ADJECTIVES: dict[str, Adjective] = {
    german: Adjective(german, stem or german, comparative, word, word_comparative)
    for german, stem, comparative, word, word_comparative in (
        ("alt", "", "älter", "old", "older"),
        ("jung", "", "jünger", "young", "younger"),
        ("groß", "", "größer", "big", "bigger"),
        ("klein", "", "kleiner", "small", "smaller"),
        ("glücklich", "", "glücklicher", "happy", "happier"),
        ("müde", "müd", "müder", "tired", "more tired"),
        ("freundlich", "", "freundlicher", "friendly", "friendlier"),
        ("klug", "", "klüger", "clever", "cleverer"),
        ("reich", "", "reicher", "rich", "richer"),
        ("krank", "", "kränker", "sick", "sicker"),
        ("stark", "", "stärker", "strong", "stronger"),
        ("neu", "", "neuer", "new", "newer"),
        ("rot", "", "", "red", ""),
        ("blau", "", "", "blue", ""),
        ("grün", "", "", "green", ""),
        ("schwarz", "", "", "black", ""),
        ("weiß", "", "", "white", ""),
        ("teuer", "teur", "teurer", "expensive", "more expensive"),
        ("billig", "", "billiger", "cheap", "cheaper"),
        ("schön", "", "schöner", "beautiful", "more beautiful"),
        ("schwer", "", "schwerer", "heavy", "heavier"),
        ("frisch", "", "frischer", "fresh", "fresher"),
        ("süß", "", "süßer", "sweet", "sweeter"),
        ("kalt", "", "kälter", "cold", "colder"),
        ("warm", "", "wärmer", "warm", "warmer"),
        ("heiß", "", "heißer", "hot", "hotter"),
        ("gut", "", "besser", "good", "better"),
        ("lang", "", "länger", "long", "longer"),
        ("kurz", "", "kürzer", "short", "shorter"),
        ("interessant", "", "interessanter", "interesting", "more interesting"),
        ("langweilig", "", "langweiliger", "boring", "more boring"),
    )
}

ADJECTIVES_OF: dict[str, tuple[Adjective, ...]] = {
    sort: tuple(ADJECTIVES[word] for word in words.split())
    for sort, words in {
        "person": "alt jung groß klein glücklich müde freundlich klug reich krank stark",
        "animal": "alt jung groß klein müde schwarz weiß schön krank stark",
        "text": "alt neu lang kurz interessant langweilig schön gut",
        "food": "groß klein frisch süß rot grün gut heiß kalt",
        "dish": "frisch gut billig teuer warm",
        "drink": "kalt warm heiß frisch gut teuer billig",
        "clothes": "alt neu rot blau grün schwarz weiß teuer billig schön lang kurz warm",
        "thing": "alt neu groß klein rot blau grün schwarz teuer billig schön schwer",
        "place": "alt neu groß klein schön rot blau",
    }.items()
}


class Verb(NamedTuple):
    """A verb: `present` by person, the prefix that separates, the auxiliary of its perfect, what it can stand with."""

    prefix: str
    infinitive: str
    present: tuple[str, ...]
    participle: str
    perfect_with_sein: bool
    english: english.Verb
    objects: tuple[Noun, ...] = ()
    people: bool = False  # people as objects, and so pronouns too
    stative: bool = False  # no modal, no `like to`, no place
    goals: tuple[tuple[str, str], ...] = ()


def _present(infinitive: str, third: str) -> tuple[str, ...]:
    """The six present forms; only the third person (and with it the second) can be irregular."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    many = stem + ("et" if stem[-1] in "td" else "t")
    third = third or many
    second = third if third[:-1].endswith(("s", "ß", "z")) else third[:-1] + "st"
    return (stem + "e", second, third, infinitive, many, infinitive)


def _verb(spec: str, third: str, participle: str, words: str, objects: str = "", *, stative: bool = False) -> Verb:
    prefix, _, infinitive = spec.rpartition("|")
    with_sein, _, participle = participle.rpartition(" ")
    nouns: list[Noun] = []
    for name in objects.split():
        nouns += SORTS[name] if name in SORTS else [NOUNS[name]]
    return Verb(
        prefix=prefix,
        infinitive=infinitive,
        present=_present(infinitive, third),
        participle=participle,
        perfect_with_sein=with_sein == "ist",
        english=english.verb(words),
        objects=tuple(nouns),
        people="person" in objects.split(),
        stative=stative,
    )


TRANSITIVE = (
    _verb("lesen", "liest", "gelesen", "read read read", "text"),
    _verb("schreiben", "", "geschrieben", "write wrote written", "Brief Geschichte Gedicht Buch"),
    _verb("essen", "isst", "gegessen", "eat ate eaten", "food dish"),
    _verb("trinken", "", "getrunken", "drink drank drunk", "drink"),
    _verb("kaufen", "", "gekauft", "buy bought bought", "food dish drink clothes thing text"),
    _verb("verkaufen", "", "verkauft", "sell sold sold", "clothes thing text animal Haus"),
    _verb("sehen", "sieht", "gesehen", "see saw seen", "person animal thing place"),
    _verb("suchen", "", "gesucht", "look+for", "person animal thing text clothes"),
    _verb("finden", "", "gefunden", "find found found", "person animal thing text clothes"),
    _verb("bezahlen", "", "bezahlt", "pay+for paid paid", "food drink clothes thing"),
    _verb("tragen", "trägt", "getragen", "carry", "thing animal"),
    _verb("malen", "", "gemalt", "paint", "place thing animal person"),
    _verb("putzen", "", "geputzt", "clean", "place thing"),
    _verb("reparieren", "", "repariert", "repair", "thing Tür Fenster"),
    _verb("waschen", "wäscht", "gewaschen", "wash", "clothes food Auto Hund"),
    _verb("verlieren", "", "verloren", "lose lost lost", "thing clothes text"),
    _verb("vergessen", "vergisst", "vergessen", "forget forgot forgotten", "person thing clothes text"),
    _verb("bekommen", "", "bekommen", "get got gotten", "text thing clothes"),
    _verb("verstehen", "", "verstanden", "understand understood understood", "person text", stative=True),
    _verb("kennen", "", "gekannt", "know knew known", "person text", stative=True),
    _verb("brauchen", "", "gebraucht", "need", "thing clothes food dish text", stative=True),
    _verb("lieben", "", "geliebt", "love", "person animal", stative=True),
    _verb("besuchen", "", "besucht", "visit", "person"),
    _verb("treffen", "trifft", "getroffen", "meet met met", "person"),
    _verb("fragen", "", "gefragt", "ask", "person"),
    _verb("hören", "", "gehört", "hear heard heard", "person animal"),
    _verb("kochen", "", "gekocht", "cook", "Ei Reis Fleisch Tomatensuppe Kartoffelsuppe Käsesuppe Kartoffel"),
    _verb("backen", "backt", "gebacken", "bake", "Brot Apfelkuchen Birnenkuchen Kirschkuchen"),
    _verb("an|rufen", "", "angerufen", "call", "person"),
    _verb("ab|holen", "", "abgeholt", "pick|up", "person thing text"),
    _verb("mit|bringen", "", "mitgebracht", "bring|along brought brought", "person animal food drink text"),
    _verb("ein|laden", "lädt", "eingeladen", "invite", "person"),
    _verb("auf|räumen", "", "aufgeräumt", "tidy|up", "Zimmer Küche Haus Garten"),
    _verb("auf|machen", "", "aufgemacht", "open", "Tür Fenster Gartentür Küchentür Tasche Brief Buch"),
    _verb("zu|machen", "", "zugemacht", "close", "Tür Fenster Gartentür Küchentür Tasche Buch"),
    _verb("an|ziehen", "", "angezogen", "put|on put put", "clothes"),
    _verb("aus|ziehen", "", "ausgezogen", "take|off took taken", "clothes"),
)

DATIVE = (
    _verb("helfen", "hilft", "geholfen", "help", "person animal"),
    _verb("danken", "", "gedankt", "thank", "person"),
    _verb("folgen", "", "ist gefolgt", "follow", "person animal"),
    _verb("antworten", "", "geantwortet", "answer", "person"),
    _verb("zu|hören", "", "zugehört", "listen+to", "person"),
)

DITRANSITIVE = (
    _verb("geben", "gibt", "gegeben", "give gave given", "food text thing drink"),
    _verb("zeigen", "", "gezeigt", "show showed shown", "text thing place animal"),
    _verb("schicken", "", "geschickt", "send sent sent", "text Bild Ball"),
    _verb("bringen", "", "gebracht", "bring brought brought", "food drink thing clothes"),
)

INTRANSITIVE = (
    _verb("schlafen", "schläft", "geschlafen", "sleep slept slept"),
    _verb("arbeiten", "", "gearbeitet", "work"),
    _verb("lachen", "", "gelacht", "laugh"),
    _verb("weinen", "", "geweint", "cry"),
    _verb("tanzen", "", "getanzt", "dance"),
    _verb("singen", "", "gesungen", "sing sang sung"),
    _verb("spielen", "", "gespielt", "play"),
    _verb("warten", "", "gewartet", "wait"),
    _verb("schwimmen", "", "ist geschwommen", "swim swam swum"),
    _verb("laufen", "läuft", "ist gelaufen", "run ran run"),
    _verb("auf|stehen", "", "ist aufgestanden", "get|up got gotten"),
    _verb("ein|schlafen", "schläft", "ist eingeschlafen", "fall|asleep fell fallen"),
    _verb("ein|kaufen", "", "eingekauft", "shop shopped shopped"),
    _verb("an|kommen", "", "ist angekommen", "arrive"),
    _verb("fern|sehen", "sieht", "ferngesehen", "watch|TV"),
    _verb("zurück|kommen", "", "ist zurückgekommen", "come|back came come"),
    _verb("aus|gehen", "", "ist ausgegangen", "go|out went gone"),
)

MOTION = (
    _verb("gehen", "", "ist gegangen", "go went gone")._replace(
        goals=(
            ("in die Schule", "to school"),
            ("ins Kino", "to the movies"),
            ("in den Park", "to the park"),
            ("nach Hause", "home"),
            ("zum Arzt", "to the doctor"),
            ("zum Markt", "to the market"),
        )
    ),
    _verb("fahren", "fährt", "ist gefahren", "drive drove driven")._replace(
        goals=(
            ("nach Berlin", "to Berlin"),
            ("nach Wien", "to Vienna"),
            ("nach München", "to Munich"),
            ("in die Stadt", "to the city"),
            ("nach Hause", "home"),
            ("zum Bahnhof", "to the station"),
        )
    ),
    _verb("bleiben", "", "ist geblieben", "stay")._replace(
        goals=(
            ("zu Hause", "at home"),
            ("in der Stadt", "in the city"),
            ("in der Schule", "at school"),
            ("im Bett", "in bed"),
        )
    ),
)

WEATHER = (_verb("regnen", "regnet", "geregnet", "rain"), _verb("schneien", "", "geschneit", "snow"))

WITH_ZU = (
    _verb("versuchen", "", "versucht", "try"),
    _verb("hoffen", "", "gehofft", "hope"),
    _verb("vergessen", "vergisst", "vergessen", "forget forgot forgotten"),
    _verb("an|fangen", "fängt", "angefangen", "begin began begun"),
)

SAYING = (
    _verb("sagen", "", "gesagt", "say said said"),
    _verb("glauben", "", "geglaubt", "believe"),
    _verb("wissen", "", "gewusst", "know knew known")._replace(
        present=("weiß", "weißt", "weiß", "wissen", "wisst", "wissen")
    ),
)

BY_INFINITIVE: dict[str, Verb] = {
    verb.prefix + verb.infinitive: verb for verb in (*TRANSITIVE, *DATIVE, *DITRANSITIVE, *INTRANSITIVE, *MOTION)
}

SEIN = Verb("", "sein", ("bin", "bist", "ist", "sind", "seid", "sind"), "gewesen", True, english.BE, stative=True)
HABEN = Verb(
    "",
    "haben",
    ("habe", "hast", "hat", "haben", "habt", "haben"),
    "gehabt",
    False,
    english.verb("have had had"),
    SORTS["thing"] + SORTS["animal"] + SORTS["text"] + SORTS["clothes"] + (NOUNS["Haus"], NOUNS["Garten"]),
    stative=True,
)
WANT = _verb("wollen", "", "gewollt", "want", "food dish drink clothes thing", stative=True)._replace(
    present=("möchte", "möchtest", "möchte", "möchten", "möchtet", "möchten")
)
FEEL = HABEN._replace(english=english.BE)
"""`Hunger haben`: German has what English is."""

PAST = {
    "sein": ("war", "warst", "war", "waren", "wart", "waren"),
    "haben": ("hatte", "hattest", "hatte", "hatten", "hattet", "hatten"),
}
"""The preterites in use; every other verb tells the past with its perfect."""
