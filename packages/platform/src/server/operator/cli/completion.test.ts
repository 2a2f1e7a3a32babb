import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { EVENT_TYPES } from '../../../core/database/event-types.ts'
import { COMMANDS } from './commands.ts'
import { completionRun, completionScript, placesOf } from './completion.ts'
import { wordsOf } from './definition.ts'

/** Tests of shell completion in the real shells, if they are installed. */
const folder = mkdtempSync(join(tmpdir(), 'custody-completion-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const place = join(folder, 'files')
mkdirSync(place)
for (const name of ['my key.pem', 'my-backup', 'other']) writeFileSync(join(place, name), '')
const script = (shell: string): string => {
  const file = join(folder, `custody.${shell}`)
  writeFileSync(file, `${completionScript(shell, COMMANDS).join('\n')}\n`)
  return file
}
const isInstalled = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Returns, for each list of words, the completions that the shell offers for the last word. */
type Offer = (cases: readonly string[][]) => string[][]
const SEPARATOR = '----'
function run(shell: string, args: string[], text: string): string[][] {
  const driver = join(folder, `driver.${shell}`)
  writeFileSync(driver, text)
  const { status, stdout, stderr } = spawnSync(shell, [...args, driver], {
    cwd: place,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: folder },
  })
  assert.deepEqual([status, stderr], [0, ''], shell)
  return stdout
    .split(`${SEPARATOR}\n`)
    .slice(0, -1)
    .map((part) => part.split('\n').filter((line) => line !== ''))
}
const SHELLS: Record<string, Offer> = {
  bash: (cases) =>
    run(
      'bash',
      ['--norc', '--noprofile'],
      [
        `source ${quoted(script('bash'))}`,
        ...cases.flatMap((words) => [
          `COMP_WORDS=(custody ${words.map(quoted).join(' ')}); COMP_CWORD=${words.length}; _custody`,
          `[ \${#COMPREPLY[@]} -gt 0 ] && printf '%s\\n' "\${COMPREPLY[@]}"; echo ${SEPARATOR}`,
        ]),
        '',
      ].join('\n'),
    ),
  // Stubs replace the functions of zsh's completion system and print their arguments. zsh itself
  // would match them with the last word, so the test filters the output.
  zsh: (cases) =>
    run(
      'zsh',
      ['-f'],
      [
        'compdef() { :; }',
        '_message() { :; }',
        '_files() { print -l -- "$place"/*(N:t); }'.replace('$place', place),
        '_describe() { local each; for each in "${(@P)argv[-1]}"; do print -r -- "${each%%:*}"; done; }',
        `source ${quoted(script('zsh'))}`,
        ...cases.flatMap((words) => [
          `words=(custody ${words.map(quoted).join(' ')}); CURRENT=${words.length + 1}; _custody; print -r -- ${SEPARATOR}`,
        ]),
        '',
      ].join('\n'),
    ).map((offered, at) => offered.filter((word) => word.startsWith(cases[at]?.at(-1) ?? ''))),
  fish: (cases) =>
    run(
      'fish',
      ['--no-config'],
      [
        `source ${quoted(script('fish'))}`,
        ...cases.flatMap((words) => [
          `complete -C ${quoted(`custody ${words.join(' ')}`)} | string replace -r '\\t.*' ''; echo ${SEPARATOR}`,
        ]),
        '',
      ].join('\n'),
    ).map((offered) => offered.map((word) => word.replace(/^\.\//, ''))),
}

test('completion words contain no shell metacharacters, and every command is included', () => {
  const places = placesOf(COMMANDS)
  const texts = places.flatMap(({ words, options, choices }) => [
    ...words.map(({ word }) => word),
    ...options.map(({ flag }) => flag),
    ...choices,
  ])
  assert.deepEqual(
    texts.filter((text) => !/^[\w.-]+$/.test(text)),
    [],
    'compgen -W would expand others',
  )
  for (const definition of COMMANDS)
    assert.ok(
      places.some(({ path }) => path === wordsOf(definition).join(' ')),
      definition.usage,
    )
})

test('the error about an unsupported shell lists the supported shells', () => {
  const complete = completionRun(COMMANDS)
  assert.throws(
    () => complete({ home: folder, words: ['tcsh'], values: {} }),
    /^OperatorError: SHELL: must be bash, zsh, fish; "tcsh" is not known$/,
  )
  assert.throws(
    () => complete({ home: folder, words: ['__proto__'], values: {} }),
    /SHELL: must be/,
  )
})

for (const [shell, offer] of Object.entries(SHELLS)) {
  test(`${shell}: completes the words and options of every command, and files only where expected`, (t) => {
    if (!isInstalled(shell)) {
      t.skip('the shell is not installed')
      return
    }
    const syntax = spawnSync(shell, ['-n', script(shell)], { encoding: 'utf8' })
    assert.deepEqual([syntax.status, syntax.stderr], [0, ''])
    const places = placesOf(COMMANDS)
    const [words, options] = [places.filter((each) => each.words.length > 0), places]
    const typed = (path: string) => (path === '' ? [] : path.split(' '))
    const offeredWords = offer(words.map(({ path }) => [...typed(path), '']))
    for (const [at, { path, words: existing }] of words.entries())
      assert.deepEqual(
        offeredWords[at]?.toSorted(),
        existing.map(({ word }) => word).sort(),
        `${shell}: custody ${path}`,
      )
    const offeredOptions = offer(options.map(({ path }) => [...typed(path), '--']))
    for (const [at, { path, options: names }] of options.entries())
      assert.deepEqual(
        offeredOptions[at]?.toSorted(),
        names.map(({ flag }) => flag).sort(),
        `${shell}: custody ${path}`,
      )
    const files = ['my key.pem', 'my-backup', 'other']
    const cases: [string[], string[]][] = [
      [['gas-tank', 'dr'], ['drain']],
      [['trigger', ''], [...EVENT_TYPES]],
      [['trigger', 'deposit.c'], ['deposit.confirmed']],
      [['trigger', '--webhook', 'completion', 'deposit.c'], ['deposit.confirmed']],
      [
        ['completion', ''],
        ['bash', 'zsh', 'fish'],
      ],
      [['request', 'G'], ['GET']],
      [['keygen', '--out', ''], files],
      [['signer', 'restore', '--in', 'x', '--recovery-secret', ''], files],
      [['audit-log', 'verify', ''], files],
      [['api-user', 'create', '--role', ''], []],
      [['api-user', 'create', '--workspace', 'list', '--rol'], ['--role']],
      [['devnet', 'venue', 'ad'], ['address']],
      [['nonsense', ''], []],
      [['help', 'gas-tank', 'dr'], ['drain']],
    ]
    const offered = offer(cases.map(([line]) => line))
    for (const [at, [line, expected]] of cases.entries())
      assert.deepEqual(
        offered[at]?.toSorted(),
        expected.toSorted(),
        `${shell}: custody ${line.join(' ')}`,
      )
  })
}
