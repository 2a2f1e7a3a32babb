import { dirname, join } from 'node:path'
import { tokens, type Token } from './imports.ts'

/** A name that a module shows to others: its own, or another's; `*` stands for a whole module. */
interface Shown {
  name: string
  from: { specifier: string; name: string } | null
  isType: boolean
}
interface Taken {
  specifier: string
  name: string
}

const DECLARED = new Set(['const', 'let', 'function', 'class', 'interface', 'type', 'enum'])
const BEFORE_NAME = new Set(['async', 'abstract', 'declare', '*'])
const TYPES = new Set(['type', 'interface'])

interface Named {
  name: string
  as: string
  isType: boolean
}

/** The names between braces, from the opening one on. */
function braced(all: readonly Token[], open: number): { names: Named[]; end: number } {
  const names: Named[] = []
  let at = open + 1
  for (let words: string[] = []; at < all.length; at++) {
    const { text } = all[at] as Token
    if (text !== ',' && text !== '}') {
      if (text !== ':') words.push(text)
      continue
    }
    const isType = words[0] === 'type' && words.length > 1 && words[1] !== 'as'
    const [name, ...more] = isType ? words.slice(1) : words
    if (name !== undefined) names.push({ name, as: more.at(-1) ?? name, isType })
    words = []
    if (text === '}') break
  }
  return { names, end: at }
}

/** What a source text shows. */
export function shownBy(source: string): Shown[] {
  const all = tokens(source)
  const text = (at: number): string => all[at]?.text ?? ''
  return all.flatMap((token, start): Shown[] => {
    if (token.kind !== 'word' || token.text !== 'export' || text(start - 1) === '.') return []
    let at = start + 1
    if (text(at) === 'default') return [{ name: 'default', from: null, isType: false }]
    const onlyTypes = text(at) === 'type' && ['{', '*'].includes(text(at + 1))
    if (onlyTypes) at++
    if (text(at) === '*') {
      const name = text(at + 1) === 'as' ? text(at + 2) : '*'
      return [
        {
          name,
          from: { specifier: text(at + (name === '*' ? 2 : 4)), name: '*' },
          isType: onlyTypes,
        },
      ]
    }
    if (text(at) === '{') {
      const { names, end } = braced(all, at)
      const specifier = text(end + 1) === 'from' ? text(end + 2) : null
      return names.map(({ name, as, isType }) => ({
        name: as,
        from: specifier === null ? null : { specifier, name },
        isType: onlyTypes || isType,
      }))
    }
    while (BEFORE_NAME.has(text(at))) at++
    if (!DECLARED.has(text(at))) return []
    const isType = TYPES.has(text(at))
    at++
    while (BEFORE_NAME.has(text(at))) at++
    return (text(at) === '{' ? braced(all, at).names.map(({ as }) => as) : [text(at)]).map(
      (name) => ({ name, from: null, isType }),
    )
  })
}

/**
 * What is read of a name that stands for a whole module: `name.member`; `*` where it is handed on
 * whole.
 */
function membersOf(source: string, name: string): string[] {
  const all = tokens(source)
  const text = (at: number): string => all[at]?.text ?? ''
  let inStatement = false
  return all.flatMap((token, at) => {
    // Imported or shown again: that is no use of it.
    if (['import', 'export'].includes(token.text) && ['{', '*', 'type'].includes(text(at + 1)))
      inStatement = true
    if (token.kind === 'string') inStatement = false
    if (token.kind !== 'word' || token.text !== name || inStatement || text(at - 1) === '.')
      return []
    return [text(at + 1) === '.' ? text(at + 2) : '*']
  })
}

/** What a source text takes from other modules. */
export function takenBy(source: string): Taken[] {
  const all = tokens(source)
  const text = (at: number): string => all[at]?.text ?? ''
  const taken: Taken[] = []
  all.forEach((token, at) => {
    if (token.kind !== 'string') return
    const specifier = token.text
    const take = (...names: string[]) => {
      taken.push(...names.map((name) => ({ specifier, name })))
    }
    if (text(at - 1) === 'from') {
      let word = at - 2
      while (word > 0 && !['import', 'export'].includes(text(word))) word--
      if (text(word) === 'export') return
      for (word++; word < at - 1; word++) {
        if (text(word) === '{') {
          const { names, end } = braced(all, word)
          take(...names.map(({ name }) => name))
          word = end
        } else if (text(word) === '*') {
          take(...membersOf(source, text(word + 2)))
          word += 2
        } else if (text(word) !== ',' && !(text(word) === 'type' && word + 1 < at - 1))
          take('default')
      }
    } else if (text(at - 1) === '(' && text(at - 2) === 'import') {
      const before = at - (text(at - 3) === 'await' ? 4 : 3)
      const after = at + (text(at + 2) === ')' ? 3 : 2)
      let open = before - 1
      if (text(before) === '=' && text(open) === '}') {
        while (open > 0 && text(open) !== '{') open--
        take(...braced(all, open).names.map(({ name }) => name))
      } else take(text(after) === '.' && text(after + 1) !== 'then' ? text(after + 1) : '*')
    }
  })
  return taken
}

/**
 * What modules show and no other one takes, as `path name`. Types that a module declares are left
 * out: they may be part of what it shows.
 * @param sources by their path; @param entries paths by the specifiers of packages; @param open
 *   modules that others may use
 */
export function deadExports(
  sources: ReadonlyMap<string, string>,
  entries: ReadonlyMap<string, string>,
  open: ReadonlySet<string>,
): string[] {
  const shown = new Map([...sources].map(([path, source]) => [path, shownBy(source)]))
  const used = new Set<string>()
  const target = (path: string, specifier: string) =>
    specifier.startsWith('.') ? join(dirname(path), specifier) : entries.get(specifier)
  const use = (user: string, path: string | undefined, name: string): void => {
    if (path === undefined || path === user) return
    for (const each of shown.get(path) ?? []) {
      const passed = each.name === '*' ? name : each.from?.name
      if (name !== '*' && each.name !== '*' && each.name !== name) continue
      used.add(`${path} ${each.name}`)
      if (!each.from) continue
      // A whole module under a name: what is read of that name, where it is used.
      const members =
        each.name !== '*' && passed === '*'
          ? user === ''
            ? ['*']
            : membersOf(sources.get(user) ?? '', each.name)
          : [passed as string]
      for (const member of members) use(user, target(path, each.from.specifier), member)
    }
  }
  for (const [path, source] of sources)
    for (const { specifier, name } of takenBy(source)) use(path, target(path, specifier), name)
  for (const path of open) use('', path, '*')
  const faces = new Set(entries.values())
  return [...shown].flatMap(([path, names]) =>
    names
      .filter(
        ({ name, from, isType }) =>
          name !== '*' &&
          !(isType && (from === null || faces.has(path))) &&
          !used.has(`${path} ${name}`),
      )
      .map(({ name }) => `${path} ${name}`),
  )
}
