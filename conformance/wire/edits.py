"""Edits of documents: a wrong message is a correct one and a few edits, as data. Sans-I/O.

A document is a JSON object or a protobuf message. A path leads to one of its members or fields: names joined by dots.
An entry of an array is named by its index, by its `name`, or by `@` and its datatype, or several datatypes:

    inputs.0.shape   outputs.-1.parameters.binary_data_size   inputs.IN_BOOL.shape   inputs.@INT8|INT16.data

An edit is called with a document and changes it in place. A value is either the new value or a function that computes
it from the old one; `plus`, `times`, `cut` and others below return such functions. A message inside another one may be
given as a dict.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any

DocumentEdit = Callable[[Any], object]
ValueChange = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Set:
    """Sets the member at `path`, which may be new, to a value; for example `Set("inputs.0.shape.0", plus(1))`."""

    path: str
    value: Any

    def __call__(self, document: Any) -> None:
        """Change the document."""
        owner, key = _find_owner(document, self.path)
        _put(owner, key, self.value(_read(owner, key)) if callable(self.value) else copy.deepcopy(self.value))


@dataclass(frozen=True, slots=True)
class Drop:
    """Removes the member or the entry at `path`; for example `Drop("inputs.0.name")`."""

    path: str

    def __call__(self, document: Any) -> None:
        """Change the document."""
        owner, key = _find_owner(document, self.path)
        if isinstance(owner, MutableMapping | MutableSequence):
            del owner[key]
        else:
            owner.ClearField(key)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Inserts a copy of the entry at `path` into its array: last, or before the entry `before`."""

    path: str
    before: int | None = None

    def __call__(self, document: Any) -> None:
        """Change the document."""
        owner, key = _find_owner(document, self.path)
        owner.insert(len(owner) if self.before is None else self.before, copy.deepcopy(owner[key]))


def chain(*edits: DocumentEdit) -> DocumentEdit:
    """Return an edit that makes several edits, in order."""

    def edit_document(document: Any) -> None:
        for edit in edits:
            edit(document)

    return edit_document


NO_EDIT: DocumentEdit = chain()


def update(path: str, **members: Any) -> DocumentEdit:
    """Return an edit that sets several members of the object at `path`."""
    return chain(*[Set(f"{path}.{name}", value) for name, value in members.items()])


# --- paths ------------------------------------------------------------------------------------------------------------


def _find_owner(document: Any, path: str) -> tuple[Any, Any]:
    """Return the object or array that contains the member at `path`, and the member's key in it.

    Raises LookupError: the document has no such object or array.
    """
    *parents, last = path.split(".")
    owner = document
    for word in parents:
        owner = _get(owner, _find_key(owner, word))
    return owner, _find_key(owner, last)


def _find_key(owner: Any, word: str) -> Any:
    """Return the key of a member: in an array the index of the entry, elsewhere the word itself."""
    return find_entry(owner, word) if isinstance(owner, MutableSequence) else word


def find_entry(entries: Sequence[Any], word: str) -> int:
    """Return the index of the entry that a word of a path names.

    Raises LookupError: no entry has this name or datatype.
    """
    if word.removeprefix("-").isdecimal():
        return int(word)
    field, wanted = ("datatype", word[1:].split("|")) if word.startswith("@") else ("name", [word])
    for index, entry in enumerate(entries):
        if _get(entry, field) in wanted:
            return index
    raise LookupError(f"no entry has the {field} {' or '.join(wanted)}")


def _get(owner: Any, key: Any) -> Any:
    """Return a member of an object or array, or a field of a message."""
    return owner[key] if isinstance(owner, Mapping | MutableSequence) else getattr(owner, key)


def _read(owner: Any, key: Any) -> Any:
    """Return the old value of a member or field, an array as a list."""
    old = _get(owner, key)
    return list(old) if isinstance(old, MutableSequence) else old


def _put(owner: Any, key: Any, value: Any) -> None:
    """Set a member of an object or array, or a field of a message."""
    if isinstance(owner, MutableMapping | MutableSequence):
        owner[key] = value
    else:
        changed = type(owner)(**{key: value})
        owner.ClearField(key)
        owner.MergeFrom(changed)


# --- values -----------------------------------------------------------------------------------------------------------


def plus(amount: Any) -> ValueChange:
    """Return a function that adds to a number, or appends to an array, to text or to bytes."""
    return lambda old: old + amount


def times(factor: int) -> ValueChange:
    """Return a function that multiplies a number, or repeats an array, text or bytes."""
    return lambda old: old * factor


def cut(count: int) -> ValueChange:
    """Return a function that removes the last `count` entries of an array, characters of text, or bytes."""
    return lambda old: old[:-count]


def written(pattern: str) -> ValueChange:
    """Return a function that writes a value as text: `pattern` contains it as `{}`, as for `str.format`."""
    return pattern.format


def replaced(old: Any, new: Any) -> ValueChange:
    """Return a function that replaces every occurrence of `old` in text or bytes."""
    return lambda value: value.replace(old, new)


def enclosed(before: Any, after: Any) -> ValueChange:
    """Return a function that puts text or bytes between two others."""
    return lambda old: before + old + after
