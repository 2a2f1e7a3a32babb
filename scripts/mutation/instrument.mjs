import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'

const silent = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((name) => [name, () => undefined]),
)
const logger = { ...silent, isDebugEnabled: () => false }

/**
 * Inserts every mutant of the given files into a copy of the project, each behind a switch that is
 * off, so that the tests are started only once.
 * @param patterns Stryker's globs; ! excludes
 * @param isNamed returns whether a file is selected
 * @returns {Promise<{ id: string, file: string, line: number, key: string, what: string }[]>} the
 *   mutants; `key` identifies one in every run
 */
export async function instrument(copy, patterns, isNamed) {
  const leftOut = patterns
    .filter((pattern) => pattern.startsWith('!'))
    .map((pattern) => pattern.slice(1))
  const names = globSync(
    patterns.filter((pattern) => !pattern.startsWith('!')),
    { cwd: copy, exclude: leftOut },
  )
    .filter((name) => !leftOut.includes(name) && isNamed(name))
    .sort()
  const sources = names.map((name) => ({
    name,
    mutate: true,
    content: readFileSync(join(copy, name), 'utf8'),
  }))
  const { files, mutants } = await new Instrumenter(logger).instrument(sources, {
    plugins: null,
    excludedMutations: [],
    ignorers: [],
  })
  for (const { name, content } of files) writeFileSync(join(copy, name), content)
  const texts = new Map(sources.map(({ name, content }) => [name, content.split('\n')]))
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location, replacement, mutatorName }) => ({
      id,
      file: fileName,
      line: location.start.line + 1,
      key: JSON.stringify([fileName, location, mutatorName, replacement]),
      what: `${mutatorName}: ${short(textAt(texts.get(fileName), location), 100)} → ${short(replacement ?? '', 60)}`,
    }))
}

const short = (text, length) => text.replaceAll(/\s+/g, ' ').slice(0, length)

/** @param location lines and columns, zero-based */
function textAt(lines, { start, end }) {
  const taken = lines.slice(start.line, end.line + 1)
  taken[taken.length - 1] = taken.at(-1).slice(0, end.column)
  taken[0] = taken[0].slice(start.column)
  return taken.join('\n')
}
