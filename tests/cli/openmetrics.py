# SPDX-License-Identifier: MIT
"""Reads OpenMetrics text 1.0 as strictly as its specification allows, and more so for labels."""

import re

NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
DESCRIPTOR = re.compile(rf'# (TYPE|UNIT|HELP) ({NAME}) (.*)')
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? (\d+(?:\.\d+)?)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,(?!$)|$)')
SUFFIXES = {'gauge': '', 'counter': '_total', 'info': '_info'}


class Bad(Exception):
    """The text is not OpenMetrics."""


def demand(is_good, line):
    if not is_good:
        raise Bad(line)


def read_labels(text):
    labels, at = {}, 0
    while text and at < len(text):
        match = LABEL.match(text, at)
        demand(match and match.group(1) not in labels, text)
        value = re.sub(r'\\(.)', lambda escape: {'n': '\n'}.get(escape[1], escape[1]), match[2])
        labels[match.group(1)] = value
        at = match.end()
    return labels


def read(text):
    """{family: {'type':, 'unit':, 'help':, 'samples': [(name, labels, value)]}}"""
    lines = text.split('\n')
    demand(lines[-2:] == ['# EOF', ''], 'the end')
    families, series, name = {}, set(), None
    for line in lines[:-2]:
        demand(line.isascii() and line.isprintable(), line)
        match = DESCRIPTOR.fullmatch(line)
        if match:
            kind, described, value = match.groups()
            if described != name:  # a family appears once
                demand(kind == 'TYPE' and described not in families, line)
                name = described
                families[name] = {'samples': []}
            demand(not families[name]['samples'] and kind.lower() not in families[name], line)
            families[name][kind.lower()] = value
            continue
        match = SAMPLE.fullmatch(line)
        demand(match and name, line)
        family = families[name]
        demand(match.group(1) == name + SUFFIXES[family['type']], line)
        labels = read_labels(match.group(2))
        key = (match.group(1), tuple(sorted(labels.items())))
        demand(key not in series, line)
        series.add(key)
        demand(family['type'] != 'info' or match.group(3) == '1', line)
        family['samples'].append((match.group(1), labels, float(match.group(3))))
    for name, family in families.items():
        demand('help' in family and family['help'].endswith('.'), name)
        demand(family['samples'], name)
        unit = family.get('unit')
        demand(unit is None or name.endswith('_' + unit), name)
        demand(unit or not re.search('_(bytes|seconds|ratio)$', name), name)
        demand(not re.search('_(total|info|created|count|sum|bucket)$', name), name)
    return families


def samples(families):
    """[(name, labels, value)] of all of them."""
    return [sample for family in families.values() for sample in family['samples']]
