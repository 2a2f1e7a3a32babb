import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { read, ROOT, tableRows } from '../../../testing/documents.ts'
import { logCalls, type LogCall } from '../../../testing/log-calls.ts'

/**
 * Compares docs/production/log-events.md with the sources, so that the messages that a SIEM matches
 * are the ones that are logged.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-log-events-'))
after(() => rmSync(folder, { recursive: true, force: true }))

interface Row {
  of: 'platform' | 'signer'
  level: string
  message: string
}

/**
 * Rows of the page's tables of messages; those of the section about signer nodes are the signer's.
 */
const rows: Row[] = read('docs/production/log-events.md')
  .split(/^## /m)
  .flatMap((section) =>
    tableRows(section)
      .filter(([level]) => ['info', 'warn', 'error', 'alert'].includes(level as string))
      .map(([level = '', message = '']): Row => ({
        of: section.startsWith('Signer nodes') ? 'signer' : 'platform',
        level,
        message,
      })),
  )
const calls = { platform: logCalls('platform'), signer: logCalls('signer') }
const sources = (of: Row['of']) =>
  globSync(`packages/${of}/src/**/!(*.test).ts`, { cwd: ROOT }).map(read).join('\n')
const texts = { platform: sources('platform'), signer: sources('signer') }

/** A `…` at the end of a row matches any rest of the message. */
const isOf = ({ level, message }: Row, call: LogCall): boolean =>
  level === call.level &&
  call.message !== null &&
  (call.message === message ||
    (message.endsWith('…') && call.message.startsWith(message.slice(0, -1).trimEnd())))

test('the test finds every call of the logger in the sources', () => {
  for (const kind of ['platform', 'signer'] as const) {
    // The sources are also searched by text, to notice a form of call that the parser does not
    // detect.
    const byWords = [
      ...texts[kind].matchAll(
        kind === 'platform'
          ? /\blog\.(?:error|warn|info|fatal)\(/g
          : /(?<![\w.])(?:this\.#|this\.#parts\.|parts\.)?log\('(?:info|warn|error|alert)'/g,
      ),
    ]
    assert.ok(byWords.length > 30, `${byWords.length} in ${kind}`)
    assert.ok(
      calls[kind].length >= byWords.length,
      `${kind}: ${calls[kind].length} of ${byWords.length}`,
    )
  }
})

test('each log message on the page exists in the sources, with its level', () => {
  assert.ok(rows.length > 60, `${rows.length} rows`)
  for (const row of rows) {
    if (calls[row.of].some((call) => isOf(row, call))) continue
    // The message is an argument of a function: ['warn', 'text'], or the text alone.
    const literal = `'${row.message.replaceAll("'", String.raw`\'`)}'`
    assert.ok(
      texts[row.of].includes(literal),
      `${row.of} does not write "${row.message}" at ${row.level}`,
    )
    const paired = new RegExp(
      String.raw`\[\s*'(info|warn|error|alert)',\s*${literal.replaceAll(/[.*+?^$()[\]{}|\\]/g, String.raw`\$&`)},?\s*\]`,
    ).exec(texts[row.of])
    if (paired) assert.equal(paired[1], row.level, row.message)
    else
      assert.equal(
        row.level,
        'warn',
        `${row.message}: functions that are given a message write at warn`,
      )
  }
})

test('the page lists each error of the platform, and each error and alert of a signer node', () => {
  for (const kind of ['platform', 'signer'] as const) {
    const grave = calls[kind].filter(({ level }) => ['error', 'fatal', 'alert'].includes(level))
    assert.ok(grave.length > 10, `${grave.length} in ${kind}`)
    for (const call of grave) {
      assert.notEqual(
        call.message,
        null,
        `${call.file}: the message of an error is written where it is logged`,
      )
      assert.ok(
        rows.some((row) => row.of === kind && isOf(row, call)),
        `${kind}, ${call.file}: "${call.message}" (${call.level}) is not in docs/production/log-events.md`,
      )
    }
  }
  for (const [, message] of texts.signer.matchAll(/\[\s*'alert',\s*'([^']+)',?\s*\]/g))
    assert.ok(
      rows.some((row) => row.message === message),
      message,
    )
})

test('the page lists no message twice for one kind of process', () => {
  const keys = rows.map(({ of, level, message }) => `${of} ${level} ${message}`)
  assert.deepEqual(
    keys.filter((key, at) => keys.indexOf(key) !== at),
    [],
  )
})

test('the platform writes every audit log action that the page lists', () => {
  const page = read('docs/production/log-events.md')
  const named = [
    ...page.matchAll(
      /`((?:sign_in|person|invitation|password|passkey|authenticator|recovery_codes|api_user|request)\.[a-z_]+)`/g,
    ),
  ].map(([, name]) => name as string)
  assert.ok(named.length > 10, `${named.length} actions`)
  for (const name of named) assert.ok(texts.platform.includes(`action: '${name}'`), name)
})

const isThere = spawnSync('logrotate', ['--version']).error === undefined

test(
  'after logrotate moves the log file, a running process continues in the new file',
  { skip: isThere ? false : 'logrotate is not installed' },
  async () => {
    const home = join(folder, 'home')
    mkdirSync(join(home, 'logs'), { recursive: true, mode: 0o700 })
    const log = join(home, 'logs', 'signer-1.log')
    const who = (flag: string) => spawnSync('id', [flag], { encoding: 'utf8' }).stdout.trim()
    const text = read('deploy/logrotate/custody')
      .replaceAll('/var/lib/custody/', `${home}/`)
      .replace('su custody custody', `su ${who('-un')} ${who('-gn')}`)
    const file = join(folder, 'rotate.conf')
    writeFileSync(file, text, { mode: 0o600 })
    // Opens the log in the same way as the platform does for a process that it starts.
    const appended = openSync(log, 'a', 0o600)
    const child = spawn(
      '/bin/sh',
      ['-c', 'while read -r line; do echo "$line" >&2; echo done; done'],
      { stdio: ['pipe', 'pipe', appended] },
    )
    closeSync(appended)
    const { stdin, stdout } = child
    assert.ok(stdin && stdout)
    const write = async (line: string) => {
      stdin.write(`${line}\n`)
      await once(stdout, 'data')
    }
    try {
      await write('before')
      const { status, stderr } = spawnSync(
        'logrotate',
        ['--force', '--state', join(folder, 'state'), file],
        { encoding: 'utf8' },
      )
      assert.equal(status, 0, stderr)
      await write('after')
      assert.equal(readFileSync(log, 'utf8'), 'after\n', 'and no gap before it')
      assert.deepEqual(readdirSync(join(home, 'logs')).sort(), ['signer-1.log', 'signer-1.log.1'])
      assert.equal(readFileSync(`${log}.1`, 'utf8'), 'before\n')
    } finally {
      const gone = once(child, 'exit')
      stdin.end()
      await gone
    }
  },
)
