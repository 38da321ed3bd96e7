#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""instrument.py TREE FILE...: rewrites C sources so that one build holds all their mutants.

Each place that can be wrong in a small way asks tn_m(ID) (mutant.h) whether it is wrong now:

    a < b          with mutants 7, 8:   ({ __auto_type l = (a); __auto_type r = (b);
                                           tn_m(7) ? l <= r : tn_m(8) ? l >= r : l < r; })
    f(x);          with mutant 9:       if (tn_m(9)) {} else f(x);

TREE is a copy of the repository, FILE sources in it (src/alloc/pool/bin.c); they are replaced.
TREE/mutants.tsv lists the mutants: ID, file, line, function, kind, text before, text after.

Not touched: constants (case labels, static tables), arguments of macros such as assertions, what
another `#if` compiles. Nor what changes nothing by construction: which of two equal numbers is
their maximum or minimum, by how much a comparison function's result is above zero, room that is
reserved for more than is needed, whether functions are called that only assert, and what holds
anyhow as tn_always and tn_never say.

Needs python3-clang and libclang of Debian (14).
"""
import ctypes.util
import os
import re
import sys

import clang.cindex as cx
from clang.cindex import CursorKind as K, TypeKind as T

FLAGS = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-DTN_CHECK_LEVEL=2", "-DTARN_BUILDING"]
RELATIONAL = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "==": ["!="], "!=": ["=="],
}
ARITHMETIC = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "^": "&",
}
INTEGERS = {
    T.BOOL, T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.SCHAR,
    T.SHORT, T.INT, T.LONG, T.LONGLONG, T.ENUM,
}
NUMBERS = INTEGERS | {T.FLOAT, T.DOUBLE}
# Their arguments are code like any other; blanks stand for the names while clang reads.
TRANSPARENT = re.compile(r"\btn_(?:un)?likely(?=\()")


# Reserves room for so many, or asserts what holds.
RESERVES = re.compile(r"\w+_reserve(_\w+)?\s*\(")
ASSERTS = re.compile(r"\w*_assert(_\w+)?\s*\(")


def flat(text):
    """With blanks of one kind, to be compared."""
    return re.sub(r"\s+", " ", text).strip()


def strip(text):
    """Without comments and parentheses around it."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S).strip()


class File:
    """One source, and how its nodes are written with their mutants."""

    def __init__(self, path, tree, first_id):
        self.path = path
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            self.text = f.read()
        assert self.text.isascii(), path
        self.next_id = first_id
        self.mutants = []
        self.function = ""
        self.returns = False # inside of a return statement
        self.result = None
        self.macros = {}

    def mutant(self, node, kind, before, after):
        number = self.next_id
        self.next_id += 1
        clean = [re.sub(r"\s+", " ", t) for t in (before, after)]
        self.mutants.append((number, self.path, node.extent.start.line, self.function, kind,
                             *clean))
        return number

    def range(self, node):
        return node.extent.start.offset, node.extent.end.offset

    def source(self, node):
        begin, end = self.range(node)
        return self.text[begin:end]

    def is_macro(self, node):
        """Whether it is (part of) one use of a macro."""
        begin, end = self.range(node)
        return begin in self.macros and end <= self.macros[begin]

    def children(self, node):
        """Those with a place of their own inside of the node, in order."""
        begin, end = self.range(node)
        at = begin
        for child in sorted(node.get_children(), key=self.range):
            first, last = self.range(child)
            if first >= at and last <= end and last > first:
                yield child
                at = last

    def rewrite(self, node, begin=None, parent=None):
        """The node's text, from `begin` on, with the mutants of all that is in it."""
        first, end = self.range(node)
        at = first if begin is None else begin
        parts = []
        for child in self.children(node):
            start, stop = self.range(child)
            if start < at:
                continue
            parts += [self.text[at:start], self.expression(child, node)]
            at = stop
        return "".join(parts) + self.text[at:end]

    # ---- expressions ----

    def kind_of(self, node):
        return node.type.get_canonical().kind

    def is_bool_operator(self, node):
        node = self.bare(node)
        return node.kind == K.BINARY_OPERATOR and self.operator(node) in (
            "<", "<=", ">", ">=", "==", "!=", "&&", "||")

    def bare(self, node):
        while node.kind in (K.PAREN_EXPR, K.UNEXPOSED_EXPR):
            inner = list(node.get_children())
            if len(inner) != 1:
                break
            node = inner[0]
        return node

    def operator(self, node):
        sides = list(node.get_children())
        if len(sides) != 2:
            return ""
        return strip(self.text[self.range(sides[0])[1]:self.range(sides[1])[0]])

    def operand(self, node, parent):
        """In a variable: promoted, which bit-fields need."""
        plus = "+" if self.kind_of(node) in NUMBERS else ""
        return plus + "(" + self.expression(node, parent) + ")"

    def takes_the_extreme(self, node, left, right):
        """Whether it is that of `a > b ? a : b` or `if (a > b) { b = a; }`, or the like."""
        a, b = flat(self.source(left)), flat(self.source(right))
        after = flat(self.text[self.range(node)[1]:self.range(node)[1] + 400])
        if "(" in a + b:
            return False
        a, b = re.escape(a), re.escape(b)
        return re.match(rf"\? ({a} : {b}|{b} : {a})[;,)}}\]]|\) {{ ({a} = {b}|{b} = {a}); }}",
                        after) is not None

    def chosen(self, node, left, right, operators, plain, kind):
        """The operator, or one of its mutants."""
        before = self.source(node)
        ids = [(self.mutant(node, kind, before, f"{plain} -> {op}"), op) for op in operators]
        name = ids[0][0]
        choice = "".join(f"tn_m({i}) ? l{name} {op} r{name} : " for i, op in ids)
        return (f"({{ __auto_type l{name} = {left}; __auto_type r{name} = {right}; "
                f"{choice}l{name} {plain} r{name}; }})")

    def binary(self, node):
        left, right = list(node.get_children())
        op = self.operator(node)
        kinds = {self.kind_of(left), self.kind_of(right)}
        if op in RELATIONAL and kinds <= NUMBERS | {T.POINTER}:
            wrong = RELATIONAL[op]
            if op not in ("==", "!=") and self.takes_the_extreme(node, left, right):
                wrong = [other for other in wrong if other[0] != op[0]] # all but equality
            return self.chosen(node, self.operand(left, node), self.operand(right, node),
                               wrong, op, "relation")
        if op in ARITHMETIC and kinds <= (INTEGERS if op in "%<<>>&|^" else NUMBERS):
            return self.chosen(node, self.operand(left, node), self.operand(right, node),
                               [ARITHMETIC[op]], op, "arithmetic")
        if op in ("&&", "||"):
            sides = []
            for side in (left, right):
                if self.source(side).startswith("tn_always(" if op == "&&" else "tn_never("):
                    sides.append(f"({self.expression(side, node)})")
                    continue
                number = self.mutant(node, "condition", self.source(node),
                                     f"{self.source(side)} is {'true' if op == '&&' else 'false'}")
                text = self.expression(side, node)
                sides.append(f"((({text})) || tn_m({number}))" if op == "&&" else
                             f"((({text})) && !tn_m({number}))")
            return f"({sides[0]} {op} {sides[1]})"
        return self.rewrite(node)

    def literal(self, node, parent):
        text = self.source(node)
        if text in ("true", "false"):
            number = self.mutant(node, "constant", text, f"!{text}")
            return f"({text} ^ tn_m({number}))"
        if not re.fullmatch(r"[0-9][0-9a-fA-FxXuUlL]*", text):
            return text
        if text == "0" and parent and parent.kind == K.INIT_LIST_EXPR:
            return text
        if parent and parent.kind == K.BINARY_OPERATOR and self.operator(parent) in RELATIONAL:
            return text
        if parent and parent.kind == K.CALL_EXPR and RESERVES.match(self.source(parent)):
            return text
        if text == "1" and self.returns and self.function.endswith("compare") and parent and \
                parent.kind in (K.RETURN_STMT, K.CONDITIONAL_OPERATOR, K.UNARY_OPERATOR):
            return text
        number = self.mutant(node, "constant", text, f"{text} + 1")
        return f"({text} + tn_m({number}))"

    def condition(self, node, parent):
        """What is true or false and no comparison: the contrary."""
        text = self.expression(node, parent)
        if self.is_bool_operator(node) or self.is_macro(node) or \
                self.kind_of(node) not in NUMBERS | {T.POINTER}:
            return text
        source = self.source(node)
        return f"(!!({text}) ^ tn_m({self.mutant(node, 'negation', source, f'!({source})')}))"

    def expression(self, node, parent=None):
        if self.is_macro(node):
            return self.literal(node, parent) if node.kind == K.INTEGER_LITERAL else \
                self.source(node)
        if node.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR) and len(list(node.get_children())) == 1:
            if self.range(node) == self.range(next(node.get_children())):
                return self.expression(next(node.get_children()), parent)
        kind = node.kind
        if kind == K.BINARY_OPERATOR:
            return self.binary(node)
        if kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
            return self.compound_assignment(node)
        if kind == K.INTEGER_LITERAL:
            return self.literal(node, parent)
        if kind == K.CXX_UNARY_EXPR or kind == K.STRING_LITERAL or kind == K.StmtExpr:
            return self.source(node)
        if kind == K.CONDITIONAL_OPERATOR:
            return self.with_condition(node, 0)
        if kind == K.UNARY_OPERATOR and self.source(node).startswith("!"):
            inner = next(node.get_children())
            if not self.is_bool_operator(inner) and parent is not None and \
                    parent.kind not in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
                text = self.rewrite(node)
                source = self.source(node)
                number = self.mutant(node, "negation", source, source[1:])
                return f"(({text}) ^ tn_m({number}))"
            return self.rewrite(node)
        return self.statement(node, parent)

    def compound_assignment(self, node):
        left, right = list(node.get_children())
        op = self.operator(node)
        if op not in ("+=", "-=") or not {self.kind_of(right)} <= NUMBERS:
            return self.rewrite(node)
        number = self.mutant(node, "arithmetic", self.source(node),
                             f"{op} -> {'-=' if op == '+=' else '+='}")
        return (f"{self.expression(left, node)} {op} ({{ __auto_type r{number} = "
                f"{self.operand(right, node)}; tn_m({number}) ? -r{number} : r{number}; }})")

    def with_condition(self, node, index):
        """A statement or expression whose child with that index is a condition."""
        at, end = self.range(node)
        parts = []
        for i, child in enumerate(self.children(node)):
            start, stop = self.range(child)
            parts.append(self.text[at:start])
            parts.append(self.condition(child, node) if i == index else
                         self.expression(child, node))
            at = stop
        return "".join(parts) + self.text[at:end]

    # ---- statements ----

    def can_go(self, node):
        """Whether it is a statement that can be left out."""
        if self.is_macro(node):
            return False
        if node.kind in (K.CONTINUE_STMT,):
            return True
        if node.kind == K.RETURN_STMT:
            return not list(node.get_children())
        return node.kind.is_expression() and not re.match(r"\(void\)\s*\w+$", self.source(node))

    def compound(self, node):
        at, end = self.range(node)
        parts = []
        for child in self.children(node):
            start, stop = self.range(child)
            parts.append(self.text[at:start])
            if self.can_go(child) and not ASSERTS.match(self.source(child)):
                number = self.mutant(child, "statement", self.source(child), "removed")
                parts.append(f"if (tn_m({number})) {{}} else ")
            parts.append(self.expression(child, node))
            at = stop
        return "".join(parts) + self.text[at:end]

    def returned(self, node):
        values = list(self.children(node))
        if not values or self.is_macro(node):
            return self.source(node)
        value = values[0]
        self.returns = True
        text = self.expression(value, node)
        self.returns = False
        kind = self.result.get_canonical().kind
        source = self.source(value)
        plain = self.bare(value)
        if kind == T.BOOL and not self.is_bool_operator(value):
            if source in ("true", "false"):
                return "return " + text
            number = self.mutant(node, "result", source, f"!({source})")
            return f"return (!!({text}) ^ tn_m({number}))"
        if kind == T.BOOL or source in ("0", "NULL"):
            return "return " + text
        if kind == T.POINTER:
            number = self.mutant(node, "result", source, "NULL")
            return f"return (tn_m({number}) ? (void *)0 : ({text}))"
        if kind in NUMBERS:
            zero = plain.kind == K.DECL_REF_EXPR and plain.referenced and \
                plain.referenced.kind == K.ENUM_CONSTANT_DECL and plain.referenced.enum_value == 0
            other = "1" if zero else "0"
            number = self.mutant(node, "result", source, other)
            return f"return (tn_m({number}) ? {other} : ({text}))"
        return "return " + text

    def variable(self, node):
        equals = self.text.find("=", node.location.offset, self.range(node)[1])
        if equals < 0 or node.storage_class == cx.StorageClass.STATIC:
            return self.source(node)
        first = self.range(node)[0]
        at = equals + 1
        init = [c for c in self.children(node) if self.range(c)[0] >= at]
        if len(init) != 1:
            return self.source(node)
        start, stop = self.range(init[0])
        return self.text[first:start] + self.expression(init[0], node) + \
            self.text[stop:self.range(node)[1]]

    def statement(self, node, parent):
        kind = node.kind
        if kind == K.COMPOUND_STMT:
            return self.compound(node)
        if kind in (K.IF_STMT, K.WHILE_STMT):
            return self.with_condition(node, 0)
        if kind == K.RETURN_STMT:
            return self.returned(node)
        if kind == K.VAR_DECL:
            return self.variable(node)
        if kind == K.CASE_STMT:
            label = next(self.children(node))
            return self.text[self.range(node)[0]:self.range(label)[1]] + \
                self.rewrite(node, self.range(label)[1])
        if kind in (K.STRUCT_DECL, K.ENUM_DECL, K.UNION_DECL, K.TYPEDEF_DECL,
                    K.STATIC_ASSERT):
            return self.source(node)
        return self.rewrite(node)

    # ---- the file ----

    def instrument(self, unit):
        own = [c for c in unit.cursor.get_children()
               if c.location.file and c.location.file.name == unit.spelling]
        for c in own:
            if c.kind == K.MACRO_INSTANTIATION:
                begin, end = self.range(c)
                self.macros[begin] = max(end, self.macros.get(begin, 0))
        at = 0
        parts = []
        for function in own:
            if function.kind != K.FUNCTION_DECL or not function.is_definition():
                continue
            body = [c for c in function.get_children() if c.kind == K.COMPOUND_STMT]
            if not body or self.is_macro(body[0]):
                continue
            start, stop = self.range(body[0])
            if start < at:
                continue
            self.function = function.spelling
            self.result = function.result_type
            parts += [self.text[at:start], self.compound(body[0])]
            at = stop
        return "".join(parts) + self.text[at:]


def read_unit(index, tree, path, hidden):
    name = os.path.join(tree, path)
    flags = FLAGS + [f"-I{tree}/include", f"-I{tree}/src", "-x", "c"]
    unit = index.parse(name, flags, unsaved_files=[(name, hidden)],
                       options=cx.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    errors = [d for d in unit.diagnostics if d.severity >= cx.Diagnostic.Error]
    if errors:
        sys.exit(f"instrument.py: {path}: {errors[0]}")
    return unit


def main():
    tree, *paths = sys.argv[1:]
    library = ctypes.util.find_library("clang-14")
    if library:
        cx.Config.set_library_file(library)
    index = cx.Index.create()
    number = 1
    rewritten = {}
    with open(os.path.join(tree, "mutants.tsv"), "w", encoding="utf-8") as table:
        for path in paths: # all are read before any is written: headers are read again
            source = File(path, tree, number)
            hidden = TRANSPARENT.sub(lambda m: " " * len(m.group()), source.text)
            rewritten[path] = source.instrument(read_unit(index, tree, path, hidden))
            number = source.next_id
            for mutant in source.mutants:
                table.write("\t".join(map(str, mutant)) + "\n")
    for path, text in rewritten.items():
        with open(os.path.join(tree, path), "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{number - 1} mutants in {len(paths)} files")


if __name__ == "__main__":
    main()
