"""Texts of two languages, ordinary and hostile, that every scheme is tried on."""

ENGLISH = [
    "The patient's naïve café-style dose of 5.5 mg/kg was re-administered (n = 12) in 2019.",
    "Unbelievable! Self-attention isn't e-mail; see https://example.org/a?b=c_d&e=f#g.",
    "Ångström, Zürich, résumé, ½ teaspoon, x² + y³, “quoted” — dashes – and … dots.",
    "MIXED Case TEXT with\ttabs\nand\r\nlines   and    blanks",
    "don't stop believing the unbelievable believers believed",
]
CHINESE = [
    "今天天气很好，我们去公园散步，看见许多花草树木。",
    "ＢＥＲＴ模型在2018年发布，引用超过10万次！《红楼梦》第１回",
    "电影《你好，李焕英》真的很感人……推荐★★★★☆（五星）",
    "繁體中文與简体中文混排：價格￥99.9元，𠮷野家。",
]
HOSTILE = [
    "",
    "   ",
    "do\u0000se \u202eright\u202c ze\u200bro \x1b[2J soft\u00adhyphen \ufeffbom \ufffd end",
    "👩‍👩‍👧 emoji 😀 and 𝒜𝓁𝓅𝒽𝒶",
    "word" * 40 + " tail",
    "[MASK] [SEP] [CLS] [PAD] [UNK] <extra_id_0> </s> <mask><pad>",
    "Ελληνικά ΣΑΣ русский Ёлка 한국어 ひらがな カタカナ ไทย",
    "blanks \u00a0 of\u2003\u2003every\u3000kind\x85\x0b\x0c\u2028 \n\n  \t here  ",
    "it's I'LL we've 'tis ''s don't'd x'",
]
