'use strict';

// JSON.parse rounds every integer beyond 2^53, and INT64/UINT64 tensors need those digits. This
// reader differs from it in what it returns for numbers: an integer that a double cannot hold is a
// BigInt, so every integral number is exact. It also refuses what would otherwise be lost without
// a word: duplicate keys, and numbers that overflow a double.

const MAX_DEPTH = 64;
const MAX_NUMBER_LENGTH = 1000; // more digits than any double has; keeps BigInt() cheap

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const LITERALS = [['true', true], ['false', false], ['null', null]];

class JsonReader {
  #text;
  #at = 0;
  #depth = 0;

  constructor(text) {
    this.#text = text;
  }

  read() {
    const value = this.#value();
    if (this.#next() !== undefined) this.#fail('unexpected text after the JSON value');
    return value;
  }

  #fail(what) {
    throw new SyntaxError(`${what} at position ${this.#at}`);
  }

  /** The next character that is not whitespace, not yet consumed. */
  #next() {
    for (;;) {
      const c = this.#text[this.#at];
      if (c !== ' ' && c !== '\n' && c !== '\r' && c !== '\t') return c;
      this.#at++;
    }
  }

  #value() {
    const c = this.#next();
    if (c === '{') return this.#nested(() => this.#object());
    if (c === '[') return this.#nested(() => this.#array());
    if (c === '"') return this.#string();
    if (c === '-' || (c >= '0' && c <= '9')) return this.#number();
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#fail(c === undefined ? 'unexpected end' : 'unexpected character');
  }

  #nested(read) {
    if (++this.#depth > MAX_DEPTH) this.#fail('too deeply nested');
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #object() {
    const object = Object.create(null); // "__proto__" is a key like any other
    if (this.#ends('}')) return object;
    do {
      if (this.#next() !== '"') this.#fail('expected a key');
      const key = this.#string();
      if (key in object) this.#fail(`duplicate key ${JSON.stringify(key)}`);
      if (this.#next() !== ':') this.#fail('expected ":"');
      this.#at++;
      object[key] = this.#value();
    } while (this.#continues('}'));
    return object;
  }

  #array() {
    const array = [];
    if (this.#ends(']')) return array;
    do array.push(this.#value()); while (this.#continues(']'));
    return array;
  }

  #ends(bracket) {
    if (this.#next() !== bracket) return false;
    this.#at++;
    return true;
  }

  #continues(bracket) {
    if (this.#ends(bracket)) return false;
    if (this.#next() !== ',') this.#fail(`expected "," or "${bracket}"`);
    this.#at++;
    return true;
  }

  #string() {
    const start = this.#at;
    let end = start;
    let backslashes;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) this.#fail('unterminated string');
      for (backslashes = 0; this.#text[end - 1 - backslashes] === '\\';) backslashes++;
    } while (backslashes % 2);
    try {
      const value = JSON.parse(this.#text.slice(start, end + 1));
      this.#at = end + 1;
      return value;
    } catch {
      return this.#fail('malformed string');
    }
  }

  #number() {
    NUMBER.lastIndex = this.#at;
    const literal = NUMBER.exec(this.#text)?.[0];
    if (literal === undefined) this.#fail('malformed number');
    if (literal.length > MAX_NUMBER_LENGTH) this.#fail('too long a number');
    const value = Number(literal);
    if (!Number.isFinite(value)) this.#fail('number out of range');
    const number = Number.isInteger(value) ? this.#integral(literal, value) : value;
    this.#at += literal.length;
    return number;
  }

  #integral(literal, value) {
    // Up to 15 significant digits a decimal and its double stand for each other, unless it
    // vanished into zero.
    if (literal.length <= 15 && value !== 0 && Number.isSafeInteger(value)) return value;
    const [, sign, whole, fraction = '', exponent = '0'] =
      /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
    const digits = (whole + fraction).replace(/0+$/, '');
    const power = Number(exponent) + whole.length - digits.length;
    if (digits !== '' && power < 0) {
      // Only rounding made it integral. As an integer it would be wrong.
      this.#fail('number with more digits than a double holds');
    }
    if (Number.isSafeInteger(value)) return value;
    return BigInt(sign + digits) * 10n ** BigInt(power);
  }
}

/** Parses JSON text; throws a SyntaxError. */
const parseJson = (text) => new JsonReader(text).read();

module.exports = { parseJson };
