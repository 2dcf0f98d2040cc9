// A small JSON reader that keeps the spelling of numbers, so that no precision is lost,
// and the order of members. Objects become Maps, numbers become Num.

export class Num {
  constructor(text) {
    this.text = text
  }

  // The value of an integer in any spelling, such as 10, 10.0 or 1e1.
  integer() {
    const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(this.text)
    let digits = whole + fraction
    let shift = Number(exponent) - fraction.length
    if (/^0*$/.test(digits)) return 0n
    if (digits.length > 1000 || Math.abs(shift) > 1000) throw new Error(`${this.text} is out of range`)
    for (; shift < 0; shift++) {
      if (!digits.endsWith('0')) throw new Error(`${this.text} is no integer`)
      digits = digits.slice(0, -1)
    }
    return BigInt(sign + digits + '0'.repeat(shift))
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const PLAIN = /[^"\\\u0000-\u001f]*/y
const SPACE = /[ \t\r\n]*/y
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const MAX_DEPTH = 500

export function parse(text) {
  let at = 0
  const wrong = () => new Error(`no JSON at character ${at}`)
  const match = (pattern) => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (!found) throw wrong()
    at = pattern.lastIndex
    return found[0]
  }
  const peek = () => {
    match(SPACE)
    return text[at]
  }
  const word = (spelled, value) => {
    if (!text.startsWith(spelled, at)) throw wrong()
    at += spelled.length
    return value
  }
  const string = () => {
    let out = ''
    for (at++; ; ) {
      out += match(PLAIN)
      const one = text[at++]
      if (one === '"') return out
      if (one !== '\\') throw wrong()
      const escape = text[at++]
      if (escape === 'u') {
        const digits = text.slice(at, at + 4)
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw wrong()
        out += String.fromCharCode(parseInt(digits, 16))
        at += 4
      } else if (escape in ESCAPES) {
        out += ESCAPES[escape]
      } else {
        throw wrong()
      }
    }
  }
  const items = (end, item) => {
    at++
    if (peek() === end) {
      at++
      return
    }
    for (;;) {
      item()
      const one = peek()
      at++
      if (one === end) return
      if (one !== ',') throw wrong()
    }
  }
  const value = (depth) => {
    if (depth > MAX_DEPTH) throw new Error('JSON is nested too deep')
    switch (peek()) {
      case '{': {
        const object = new Map()
        items('}', () => {
          if (peek() !== '"') throw wrong()
          const name = string()
          if (peek() !== ':') throw wrong()
          at++
          object.set(name, value(depth + 1))
        })
        return object
      }
      case '[': {
        const array = []
        items(']', () => array.push(value(depth + 1)))
        return array
      }
      case '"':
        return string()
      case 't':
        return word('true', true)
      case 'f':
        return word('false', false)
      case 'n':
        return word('null', null)
      default:
        return new Num(match(NUMBER))
    }
  }
  const result = value(0)
  match(SPACE)
  if (at < text.length) throw wrong()
  return result
}
