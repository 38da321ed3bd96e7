/* SPDX-License-Identifier: MIT */
#include "base/matcher.h"

#include "base/assertion.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum kind {
    KIND_BYTE, /* these three consume a byte of the text */
    KIND_ANY,
    KIND_SET,
    KIND_SPLIT, /* continues at the next operation and at `to` */
    KIND_JUMP,  /* continues at `to` */
    KIND_TEXT_BEGIN,
    KIND_TEXT_END,
    KIND_WORD_BEGIN,
    KIND_WORD_END,
    KIND_WORD_EDGE,
    KIND_NO_EDGE,
    KIND_MATCH
};

/* One operation. */
struct tn_match_op {
    uint8_t kind;
    uint8_t byte;
    uint16_t set; /* index */
    int32_t to;   /* relative */
};

/* A set of bytes. */
struct tn_match_set {
    uint64_t bits[4];
};

static void set_add(struct tn_match_set *set, unsigned char byte)
{
    set->bits[byte / 64] |= (uint64_t)1 << byte % 64;
}

static bool set_has(const struct tn_match_set *set, unsigned char byte)
{
    return set->bits[byte / 64] >> byte % 64 & 1;
}

/* ---- reading an expression ---- */

enum {
    PLACES_MAX = 8 /* bits of tn_matcher.places */
};

#define NO_PART UINT32_MAX
#define ENDLESS UINT32_MAX

/* State of an open group. */
struct level {
    uint32_t begin;
    uint32_t branch; /* start of the current alternative */
    uint32_t leave;  /* the last jump from the end of an alternative, + 1; its `to` links to the
                        previous one */
};

struct reader {
    struct tn_matcher *matcher;
    const char *at;
    struct level levels[TN_MATCHER_DEPTH_MAX + 1];
    unsigned depth;
    uint32_t part; /* start of the item that a repetition would repeat, or NO_PART */
    enum tarn_status status;
};

static struct tn_match_op *op_at(const struct reader *r, size_t index)
{
    return (struct tn_match_op *)r->matcher->ops.items + index;
}

static uint32_t here(const struct reader *r)
{
    return (uint32_t)r->matcher->ops.count;
}

/* Appends space for `count` operations. */
static bool ops_reserve(struct reader *r, uint64_t count)
{
    if (r->status == TARN_OK && here(r) + count > TN_MATCHER_OPS_MAX) {
        r->status = TARN_ERR_LIMIT;
    }
    if (r->status == TARN_OK && !tn_vec_reserve(&r->matcher->ops, (size_t)count)) {
        r->status = TARN_ERR_HOST_MEMORY;
    }
    return r->status == TARN_OK;
}

static void op_add(struct reader *r, struct tn_match_op op)
{
    if (ops_reserve(r, 1)) {
        r->matcher->ops.count++;
        *op_at(r, here(r) - 1) = op;
    }
}

/* Inserts operations at `index`, moving the later ones. */
static void op_insert(struct reader *r, uint32_t index, struct tn_match_op op)
{
    const uint32_t moved = here(r) - index;

    op_add(r, op);
    if (r->status == TARN_OK) {
        memmove(op_at(r, index + 1), op_at(r, index), moved * sizeof op);
        *op_at(r, index) = op;
    }
}

/* Appends a copy of the same operations. */
static void ops_copy(struct reader *r, uint32_t from, uint32_t count)
{
    if (count > 0 && ops_reserve(r, count)) { /* else there may be no memory to point into */
        memcpy(op_at(r, here(r)), op_at(r, from), count * sizeof(struct tn_match_op));
        r->matcher->ops.count += count;
    }
}

static void part_add(struct reader *r, struct tn_match_op op)
{
    r->part = here(r);
    op_add(r, op);
}

/* An item that cannot be repeated. */
static void anchor_add(struct reader *r, enum kind kind)
{
    r->part = NO_PART;
    op_add(r, (struct tn_match_op){.kind = (uint8_t)kind});
}

/* ---- sets ---- */

static const struct {
    const char *name;
    int (*has)(int c);
} classes[] = {
    {"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum}, {"upper", isupper},
    {"lower", islower}, {"space", isspace}, {"blank", isblank}, {"punct", ispunct},
    {"print", isprint}, {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit},
};

/* ASCII in every locale. */
static void class_add(struct tn_match_set *set, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const bool same =
            strlen(classes[i].name) == length && memcmp(classes[i].name, name, length) == 0;

        for (int c = 0; same && c < 0x80; c++) {
            if (classes[i].has(c)) {
                set_add(set, (unsigned char)c);
            }
        }
    }
}

/* After "[:", "[." or "[=": the end of the name, or NULL. */
static const char *name_end(const char *at)
{
    const char end[] = {at[1], ']', '\0'};

    return at[0] == '[' && at[1] && strchr(":.=", at[1]) ? strstr(at + 2, end) : NULL;
}

/* A byte, possibly written as [.x.] or [=x=]. */
static unsigned char element_read(struct reader *r)
{
    const char *end = name_end(r->at);
    const char *byte = end ? r->at + 2 : r->at;

    r->at = end ? end + 2 : r->at + (*r->at != '\0');
    return (unsigned char)*byte;
}

static void range_read(struct reader *r, struct tn_match_set *set)
{
    const unsigned first = element_read(r);
    unsigned last = first;

    if (r->at[0] == '-' && r->at[1] != ']' && r->at[1] != '\0') {
        r->at++;
        last = element_read(r);
    }
    for (unsigned c = first; c <= last; c++) {
        set_add(set, (unsigned char)c);
    }
}

static void set_part_add(struct reader *r, const struct tn_match_set *set)
{
    struct tn_match_set *made = tn_vec_push(&r->matcher->sets);

    if (!made) {
        r->status = TARN_ERR_HOST_MEMORY;
        return;
    }
    if (r->matcher->sets.count > TN_MATCHER_OPS_MAX) {
        r->status = TARN_ERR_LIMIT;
        return;
    }
    *made = *set;
    part_add(r,
             (struct tn_match_op){.kind = KIND_SET, .set = (uint16_t)(r->matcher->sets.count - 1)});
}

static void set_invert(struct tn_match_set *set)
{
    for (int i = 0; i < 4; i++) {
        set->bits[i] = ~set->bits[i];
    }
}

/* After the '['. */
static void bracket_read(struct reader *r)
{
    const bool is_inverted = *r->at == '^';
    struct tn_match_set set = {{0}};
    bool is_first = true;

    r->at += is_inverted;
    for (; *r->at && (is_first || *r->at != ']'); is_first = false) {
        const char *end = r->at[0] == '[' && r->at[1] == ':' ? name_end(r->at) : NULL;

        if (end) {
            class_add(&set, r->at + 2, (size_t)(end - r->at) - 2);
            r->at = end + 2;
        } else {
            range_read(r, &set);
        }
    }
    r->at += *r->at != '\0';
    if (is_inverted) {
        set_invert(&set);
    }
    set_part_add(r, &set);
}

/* ---- escapes ---- */

static bool is_word(unsigned char byte)
{
    return byte < 0x80 && (isalnum(byte) || byte == '_');
}

static void class_escape_add(struct reader *r, const char *name, bool with_underscore,
                             bool inverted)
{
    struct tn_match_set set = {{0}};

    class_add(&set, name, strlen(name));
    if (with_underscore) {
        set_add(&set, '_');
    }
    if (inverted) {
        set_invert(&set);
    }
    set_part_add(r, &set);
}

/* After the '\\'. */
static void escape_read(struct reader *r)
{
    static const char anchors[] = "`'<>bB";
    static const uint8_t kinds[] = {KIND_TEXT_BEGIN, KIND_TEXT_END,  KIND_WORD_BEGIN,
                                    KIND_WORD_END,   KIND_WORD_EDGE, KIND_NO_EDGE};
    const char c = *r->at;
    const char *anchor = c ? strchr(anchors, c) : NULL;

    r->at += c != '\0';
    if (anchor) {
        anchor_add(r, (enum kind)kinds[anchor - anchors]);
    } else if (c == 'w' || c == 'W') {
        class_escape_add(r, "alnum", true, c == 'W');
    } else if (c == 's' || c == 'S') {
        class_escape_add(r, "space", false, c == 'S');
    } else {
        part_add(r, (struct tn_match_op){.kind = KIND_BYTE, .byte = (uint8_t)c});
    }
}

/* ---- repetitions ---- */

/* Makes the item optional. */
static void part_make_optional(struct reader *r)
{
    const uint32_t length = here(r) - r->part;

    op_insert(r, r->part, (struct tn_match_op){.kind = KIND_SPLIT, .to = (int32_t)length + 1});
}

/* Makes the last `length` operations a loop. */
static void part_make_loop(struct reader *r, uint32_t length)
{
    op_add(r, (struct tn_match_op){.kind = KIND_SPLIT, .to = -(int32_t)length});
}

/* Appends nested optional copies: each may be skipped together with all later ones. */
static void options_add(struct reader *r, uint32_t from, uint32_t length, uint32_t count)
{
    if ((uint64_t)count * (length + 1) > TN_MATCHER_OPS_MAX) {
        r->status = TARN_ERR_LIMIT;
        return;
    }
    for (uint32_t left = count; left > 0 && r->status == TARN_OK; left--) {
        op_add(r, (struct tn_match_op){.kind = KIND_SPLIT, .to = (int32_t)(left * (length + 1))});
        ops_copy(r, from, length);
    }
}

static void part_repeat(struct reader *r, uint32_t least, uint32_t most)
{
    const uint32_t from = r->part;
    const uint32_t length = here(r) - from;

    if (most == 0) {
        r->matcher->ops.count = from;
        return;
    }
    for (uint32_t i = 1; i < least && r->status == TARN_OK; i++) {
        ops_copy(r, from, length);
    }
    if (most == ENDLESS) {
        part_make_loop(r, length);
    } else {
        options_add(r, from, length, most - (least > 0 ? least : 1));
    }
    if (least == 0 && r->status == TARN_OK) {
        part_make_optional(r);
    }
}

static uint32_t number_read(struct reader *r)
{
    uint32_t number = 0;

    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        number = number > TN_MATCHER_OPS_MAX ? number : number * 10 + (uint32_t)(*r->at - '0');
    }
    return number;
}

/* Behind the '{': {n}, {n,} or {n,m}, {,m} too. */
static void bounds_read(struct reader *r)
{
    const uint32_t least = number_read(r);
    uint32_t most = least;

    if (*r->at == ',') {
        r->at++;
        most = *r->at >= '0' && *r->at <= '9' ? number_read(r) : ENDLESS;
    }
    r->at += *r->at == '}';
    if (most < least || least > TN_MATCHER_OPS_MAX) {
        r->status = TARN_ERR_LIMIT;
        return;
    }
    part_repeat(r, least, most);
}

static void repetition_read(struct reader *r, char c)
{
    if (r->part == NO_PART) {
        part_add(r, (struct tn_match_op){.kind = KIND_BYTE, .byte = (uint8_t)c});
    } else if (c == '{') {
        bounds_read(r);
    } else {
        part_repeat(r, c == '+' ? 1 : 0, c == '?' ? 1 : ENDLESS);
    }
}

/* ---- groups and alternatives ---- */

static void level_open(struct reader *r)
{
    if (r->depth == TN_MATCHER_DEPTH_MAX) {
        r->status = TARN_ERR_LIMIT;
        return;
    }
    r->levels[++r->depth] = (struct level){.begin = here(r), .branch = here(r)};
    r->part = NO_PART;
}

/* Ends an alternative with a jump to the end of the group, and starts the next one. */
static void branch_end(struct reader *r)
{
    struct level *level = &r->levels[r->depth];

    op_insert(
        r, level->branch,
        (struct tn_match_op){.kind = KIND_SPLIT, .to = (int32_t)(here(r) - level->branch) + 2});
    op_add(r, (struct tn_match_op){.kind = KIND_JUMP, .to = (int32_t)level->leave});
    level->leave = here(r);
    level->branch = here(r);
    r->part = NO_PART;
}

/* Sets the targets of the jumps from the ends of the alternatives. */
static void level_end(struct reader *r)
{
    uint32_t leave = r->levels[r->depth].leave;

    while (leave > 0 && r->status == TARN_OK) {
        struct tn_match_op *jump = op_at(r, leave - 1);
        const uint32_t before = (uint32_t)jump->to;

        jump->to = (int32_t)(here(r) - (leave - 1));
        leave = before;
    }
}

static void level_close(struct reader *r)
{
    if (r->depth == 0) { /* unmatched: an ordinary byte */
        part_add(r, (struct tn_match_op){.kind = KIND_BYTE, .byte = ')'});
        return;
    }
    level_end(r);
    r->part = r->levels[r->depth--].begin;
}

/* ---- searching ---- */

/* Operations that can consume the next byte. */
struct waiting {
    uint16_t ops[TN_MATCHER_OPS_MAX];
    uint32_t count;
};

struct search {
    const struct tn_matcher *matcher;
    const char *text; /* NULL: any, in which all anchors hold */
    size_t length;
    size_t at;
    uint64_t seen[TN_MATCHER_OPS_MAX / 64]; /* operations visited at this byte */
    uint16_t open[TN_MATCHER_OPS_MAX];      /* stack of operations to follow */
    uint32_t open_count;
    struct waiting waiting[2];
};

static void op_open(struct search *s, uint32_t op)
{
    const uint64_t bit = (uint64_t)1 << op % 64;

    if (!(s->seen[op / 64] & bit)) {
        s->seen[op / 64] |= bit;
        s->open[s->open_count++] = (uint16_t)op;
    }
}

static bool anchor_holds(const struct search *s, enum kind kind)
{
    if (!s->text) {
        return true;
    }
    const bool before = s->at > 0 && is_word((unsigned char)s->text[s->at - 1]);
    const bool behind = s->at < s->length && is_word((unsigned char)s->text[s->at]);

    if (kind == KIND_TEXT_BEGIN || kind == KIND_TEXT_END) {
        return s->at == (kind == KIND_TEXT_BEGIN ? 0 : s->length);
    }
    if (kind == KIND_WORD_BEGIN || kind == KIND_WORD_END) {
        return before != behind && behind == (kind == KIND_WORD_BEGIN);
    }
    return (before != behind) == (kind == KIND_WORD_EDGE);
}

/* Follows operations from `op` that consume no byte. True when the expression matches. */
static bool op_follow(struct search *s, struct waiting *waiting, uint32_t op)
{
    const struct tn_match_op *ops = s->matcher->ops.items;

    op_open(s, op);
    while (s->open_count > 0) {
        const uint32_t i = s->open[--s->open_count];
        const enum kind kind = (enum kind)ops[i].kind;

        if (kind == KIND_MATCH) {
            return true;
        }
        if (kind <= KIND_SET) {
            waiting->ops[waiting->count++] = (uint16_t)i;
            continue;
        }
        if (kind == KIND_JUMP || kind == KIND_SPLIT) {
            op_open(s, (uint32_t)((int32_t)i + ops[i].to));
        }
        if (kind != KIND_JUMP && (kind == KIND_SPLIT || anchor_holds(s, kind))) {
            op_open(s, i + 1);
        }
    }
    return false;
}

static bool op_takes(const struct tn_matcher *matcher, const struct tn_match_op *op,
                     unsigned char byte)
{
    const struct tn_match_set *sets = matcher->sets.items;

    return op->kind == KIND_ANY || (op->kind == KIND_BYTE && op->byte == byte) ||
           (op->kind == KIND_SET && set_has(&sets[op->set], byte));
}

static void seen_clear(struct search *s)
{
    memset(s->seen, 0, (s->matcher->ops.count + 63) / 64 * sizeof *s->seen);
}

static void search_begin(struct search *s, const struct tn_matcher *matcher, const char *text,
                         size_t length)
{
    s->matcher = matcher;
    s->text = text;
    s->length = length;
    s->at = 0;
    s->open_count = 0;
    s->waiting[0].count = 0;
    seen_clear(s);
}

/* Notes that a match can have the byte there. */
static void byte_note(struct tn_matcher *matcher, unsigned byte, unsigned place)
{
    matcher->places[byte] |= (uint8_t)(1u << place);
}

/* Notes which bytes the operations take, as byte number `place` of a match. */
static void place_note(struct tn_matcher *matcher, const struct waiting *waiting, unsigned place)
{
    const struct tn_match_op *ops = matcher->ops.items;

    for (uint32_t i = 0; i < waiting->count; i++) {
        const struct tn_match_op *op = &ops[waiting->ops[i]];

        if (op->kind == KIND_BYTE) { /* most */
            byte_note(matcher, op->byte, place);
            continue;
        }
        for (unsigned byte = 0; byte < 256; byte++) {
            if (op_takes(matcher, op, (unsigned char)byte)) {
                byte_note(matcher, byte, place);
            }
        }
    }
}

/* The operations that take the byte behind those of `now`, whichever bytes and anchors there are.
 * True when the expression may match there. */
static bool place_next(struct search *s, const struct waiting *now, struct waiting *next)
{
    seen_clear(s);
    next->count = 0;
    for (uint32_t i = 0; i < now->count; i++) {
        if (op_follow(s, next, now->ops[i] + 1u)) {
            return true;
        }
    }
    return false;
}

/* What a match can begin with: as many bytes as the shortest one has, at most 8. */
static void begin_learn(struct tn_matcher *matcher)
{
    struct search s; /* large: only the used part is initialized */
    bool matches;

    search_begin(&s, matcher, NULL, 0);
    memset(matcher->places, 0, sizeof matcher->places);
    matcher->place_count = 0;
    matches = op_follow(&s, &s.waiting[0], 0);
    while (!matches && matcher->place_count < PLACES_MAX) {
        const unsigned place = matcher->place_count++;

        place_note(matcher, &s.waiting[place % 2], place);
        matches = place_next(&s, &s.waiting[place % 2], &s.waiting[!(place % 2)]);
    }
}

/* The last operation that another one jumps to: every match goes through it and all that follow, if
 * these consume bytes or are anchors. */
static size_t last_target(const struct tn_matcher *matcher)
{
    const struct tn_match_op *ops = matcher->ops.items;
    size_t last = 0;

    for (size_t i = 0; i < matcher->ops.count; i++) {
        const size_t target = (size_t)((int64_t)i + ops[i].to);

        if ((ops[i].kind == KIND_JUMP || ops[i].kind == KIND_SPLIT) && target > last) {
            last = target;
        }
    }
    return last;
}

/* The bytes before "$" at the end of the expression. */
static void end_learn(struct tn_matcher *matcher)
{
    const struct tn_match_op *ops = matcher->ops.items;
    const size_t count = matcher->ops.count;
    const size_t target = last_target(matcher);
    size_t first = count >= 2 && ops[count - 2].kind == KIND_TEXT_END ? count - 2 : 0;
    const size_t limit = first;

    while (first > target && ops[first - 1].kind == KIND_BYTE &&
           limit - first < TN_MATCHER_END_MAX) {
        first--;
    }
    matcher->end_count = 0;
    for (size_t i = first; i < limit; i++) {
        matcher->end[matcher->end_count++] = (char)ops[i].byte;
    }
}

/* Whether a match can begin here. */
static bool can_begin(const struct search *s)
{
    return s->matcher->place_count == 0 ||
           (s->at < s->length && s->matcher->places[(unsigned char)s->text[s->at]] & 1);
}

/* Advances all states by one byte, and starts a new match at it. */
static bool byte_follow(struct search *s, const struct waiting *now, struct waiting *next)
{
    const struct tn_match_op *ops = s->matcher->ops.items;
    const unsigned char byte = (unsigned char)s->text[s->at++];

    seen_clear(s);
    next->count = 0;
    for (uint32_t i = 0; i < now->count; i++) {
        if (op_takes(s->matcher, &ops[now->ops[i]], byte) && op_follow(s, next, now->ops[i] + 1u)) {
            return true;
        }
    }
    return can_begin(s) && op_follow(s, next, 0);
}

/* ---- whole expressions ---- */

static void next_read(struct reader *r)
{
    const char c = *r->at++;

    switch (c) {
    case '(':
        level_open(r);
        break;
    case ')':
        level_close(r);
        break;
    case '|':
        branch_end(r);
        break;
    case '*':
    case '+':
    case '?':
    case '{':
        repetition_read(r, c);
        break;
    case '^':
    case '$':
        anchor_add(r, c == '^' ? KIND_TEXT_BEGIN : KIND_TEXT_END);
        break;
    case '[':
        bracket_read(r);
        break;
    case '\\':
        escape_read(r);
        break;
    default:
        part_add(r, (struct tn_match_op){.kind = (uint8_t)(c == '.' ? KIND_ANY : KIND_BYTE),
                                         .byte = (uint8_t)c});
    }
}

enum tarn_status tn_matcher_init(struct tn_matcher *matcher, const char *text)
{
    struct reader r = {.matcher = matcher, .at = text, .part = NO_PART};

    tn_vec_init(&matcher->ops, sizeof(struct tn_match_op));
    tn_vec_init(&matcher->sets, sizeof(struct tn_match_set));
    while (*r.at && r.status == TARN_OK) {
        next_read(&r);
    }
    while (r.depth > 0 && r.status == TARN_OK) {
        level_close(&r);
    }
    level_end(&r);
    op_add(&r, (struct tn_match_op){.kind = KIND_MATCH});
    if (r.status) {
        tn_matcher_fini(matcher);
    } else {
        begin_learn(matcher);
        end_learn(matcher);
    }
    return r.status;
}

void tn_matcher_fini(struct tn_matcher *matcher)
{
    tn_vec_fini(&matcher->sets);
    tn_vec_fini(&matcher->ops);
}

/* Goes on to where a match may begin, if none is under way; none is empty. Bit k of `fitting` is
 * set while the last k + 1 bytes can be the first ones of a match. */
static bool begin_find(struct search *s, struct waiting *waiting)
{
    const unsigned char *text = (const unsigned char *)s->text;
    const uint8_t *places = s->matcher->places;
    const unsigned count = s->matcher->place_count;
    const size_t length = s->length;
    unsigned fitting = 0;

    for (size_t at = s->at; at < length; at++) {
        fitting = (fitting << 1 | 1) & places[text[at]];
        if (fitting >> (count - 1) & 1) {
            s->at = at - (count - 1);
            seen_clear(s);
            (void)op_follow(s, waiting, 0);
            if (waiting->count > 0) {
                return true;
            }
        }
    }
    return false;
}

bool tn_matcher_finds(const struct tn_matcher *matcher, const char *text, size_t length)
{
    struct search s; /* large: only the used part is initialized */
    unsigned turn = 0;

    if (length < matcher->end_count ||
        memcmp(text + length - matcher->end_count, matcher->end, matcher->end_count) != 0) {
        return false;
    }
    search_begin(&s, matcher, text, length);
    if (can_begin(&s) && op_follow(&s, &s.waiting[turn], 0)) {
        return true;
    }
    while (s.at < length) {
        if (s.waiting[turn].count == 0 && matcher->place_count > 0 &&
            !begin_find(&s, &s.waiting[turn])) {
            return false;
        }
        if (byte_follow(&s, &s.waiting[turn], &s.waiting[!turn])) {
            return true;
        }
        turn = !turn;
    }
    return false;
}
