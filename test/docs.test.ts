import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { commandsFor } from '../packages/platform/src/server/operator/cli/commands.ts'
import { programFor } from '../packages/platform/src/server/operator/cli/programs.ts'
import { errorsDocument } from '../packages/platform/src/server/reference/errors-document.ts'
import {
  FOLLOW_UP_PAGES,
  shellBlocks,
  TESTED_ELSEWHERE,
} from '../packages/platform/testing/documented-commands.ts'
import {
  blocksOf,
  documents,
  inlineCommands,
  isOfBundles,
  read,
  ROOT,
  type Block,
} from '../packages/platform/testing/documents.ts'

/**
 * Tests of the commands in the documents: docs.long.test.ts must run each of them, and shells must
 * accept them unchanged.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-docs-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const blocks = documents().flatMap(blocksOf)
const shell = blocks.filter(({ language }) => language === 'sh')
const at = ({ file, line }: Block) => `${file}:${line}`

test('every fenced block names its language, and only shell blocks contain commands', () => {
  assert.ok(shell.length > 15, 'the documents were found')
  for (const block of blocks) {
    assert.ok(
      ['sh', 'json', 'ts', 'html', 'text', 'diff'].includes(block.language),
      `${at(block)}: language "${block.language}"`,
    )
    if (block.language !== 'sh')
      assert.doesNotMatch(
        block.text,
        /^\s*(\$ )?(npx|npm|node|curl|export(?= \w+=)|CUSTODY_\w+=\S+ npm) /m,
        at(block),
      )
  }
})

/** Returns the anchor that GitHub and the site generate for a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')

test('every link to a repository file or heading has an existing target', () => {
  let links = 0
  for (const file of documents()) {
    const prose = read(file)
      .replaceAll(/^( *)```.*?^\1```/gms, '')
      .replaceAll(/`[^`\n]*`/g, '')
    for (const [, target = '', anchor] of prose.matchAll(
      /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g,
    )) {
      const path = target === '' ? join(ROOT, file) : join(ROOT, file, '..', target)
      assert.ok(existsSync(path), `${file}: ${target}`)
      links++
      if (anchor === undefined) continue
      const anchors = [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
        anchorOf(heading as string),
      )
      assert.ok(
        anchors.includes(anchor),
        `${file}: ${target}#${anchor} is none of ${anchors.join(', ')}`,
      )
    }
  }
  assert.ok(links > 100, `${links} links`)
})

test('the error page matches the registry of error codes', () => {
  assert.equal(read('docs/errors.md'), errorsDocument(), 'run npx node scripts/errors-page.mjs')
})

test('the list of decision records contains each record with its title', () => {
  const records = documents().filter((file) => /decisions\/\d/.test(file))
  const lines = records.map(
    (file) =>
      `- [${file.slice(15, 18)}](${file.slice(15)}) — ${/^# (.+)$/m.exec(read(file))?.[1] ?? ''}`,
  )
  assert.deepEqual(
    read('docs/decisions/README.md')
      .split('\n')
      .filter((line) => line.startsWith('- [')),
    lines,
  )
})

test('the page of the networks has one row for each network of the registry', () => {
  const { networks } = JSON.parse(read('packages/chains/data/registry.json')) as {
    networks: { code: string; mode: string }[]
  }
  const [, checked = ''] = read('docs/production/networks.md').split('## Checked on, by')
  const rows = [...(checked.split('\n## ')[0] ?? '').matchAll(/^\| ([A-Z_]+) /gm)].map(
    ([, code]) => code,
  )
  assert.deepEqual(rows.toSorted(), [...new Set(networks.map(({ code }) => code))].toSorted())
})

test('every documented node command uses the checkout’s Node version', () => {
  for (const block of shell)
    assert.doesNotMatch(block.text, /^\s*node /m, `${at(block)}: use npx node`)
  for (const file of documents())
    assert.deepEqual(
      [...read(file).matchAll(/`node [^`]*`/g)].map(([code]) => code),
      [],
      `${file}: use npx node`,
    )
})

/**
 * Fails if the operator's command does not know these words or one of their options.
 * @param words the words after `custody`
 */
function assertKnown(where: string, words: readonly string[]): void {
  if (words[0] === 'COMMAND' || words[0] === '…' || words[0]?.startsWith('--')) return
  const options = words.flatMap((word) => /^--([a-z-]+)/.exec(word)?.[1] ?? [])
  const program = programFor(words)
  if (program) {
    for (const option of options)
      assert.ok(['help', ...program.options].includes(option), `${where}: --${option}`)
    return
  }
  // `signer enrol|revoke` stands for two commands.
  const named = words.filter((word) => !word.startsWith('-')).slice(0, 2)
  const alternatives = (named[1] ?? '')
    .split('|')
    .map((word) => (/^[a-z-]+$/.test(word) ? [named[0] as string, word] : [named[0] as string]))
  for (const each of alternatives) {
    const matches =
      commandsFor(each).length > 0
        ? commandsFor(each)
        : commandsFor(each.slice(0, 1)).filter(({ usage }) => /^\S+ [<[]/.test(usage))
    assert.ok(matches.length > 0, where)
    const allowed = [
      'json',
      'field',
      'help',
      ...matches.flatMap((one) =>
        Object.keys(one.options ?? {}).map((name) => name.replace('!', '').split(' ')[0]),
      ),
    ]
    for (const option of options) assert.ok(allowed.includes(option), `${where}: --${option}`)
  }
}

test('each command in running text exists in the CLI, with its options', () => {
  const commands = documents().flatMap((file) =>
    inlineCommands(file).map((command) => [file, command] as const),
  )
  assert.ok(commands.length > 100, `${commands.length} commands`)
  for (const [file, command] of commands)
    assertKnown(`${file}: ${command}`, command.split(/\s+/).slice(1))
})

test("the production pages use a bundle's command, and no program of a checkout", () => {
  const pages = documents().filter(isOfBundles)
  assert.ok(pages.length > 15)
  for (const file of pages) {
    const checkout =
      /npx custody|npx node|packages\/\w+\/src\/[\w/-]+\.ts|\b(?:setup|kek|tls|recover)\.ts\b/.exec(
        read(file),
      )
    assert.equal(
      checkout?.[0],
      file === 'docs/operating.md' || file.endsWith('several-hosts.md') ? 'npx custody' : undefined,
      file,
    )
    for (const { text, line } of blocksOf(file).filter(({ language }) => language === 'sh')) {
      for (const [command] of text.matchAll(/(?<=^\s*)custody [^\n|]+/gm))
        assertKnown(`${file}:${line}: ${command}`, command.trim().split(/\s+/).slice(1))
    }
  }
})

/**
 * Runs a text as if it had been pasted: an interactive shell reads it from standard input.
 * @returns the words of each command
 */
function pasted(program: string, args: string[], text: string): string[][] {
  const out = join(folder, 'words')
  rmSync(out, { force: true })
  const programs = ['npx', 'npm', 'curl', 'custody', 'cd', 'ln', 'sha256sum', 'set', '.']
  const recorder = [...programs, 'bitcoind', 'bitcoin-cli', 'geth'].map(
    (name) => `${name}() { { printf '%s\\036' ${name} "$@"; printf '\\035'; } >> ${out}; echo 0; }`,
  )
  const { stderr } = spawnSync(program, args, {
    input: `${recorder.join('\n')}\n${text}\n`,
    encoding: 'utf8',
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, PS1: '', PS2: '', TERM: 'dumb' },
  })
  assert.doesNotMatch(
    stderr,
    /no matches found|not found|syntax error|parse error|event not found/,
    `${text}\n${stderr}`,
  )
  const words = readFileSync(out, 'utf8')
  return words
    .split('\u001D')
    .slice(0, -1)
    .map((line) => line.split('\u001E').slice(0, -1))
}

test('bash and zsh accept each shell block, and parse the same commands in it', (t) => {
  const hasZsh = spawnSync('zsh', ['--version']).status === 0
  if (!hasZsh) t.diagnostic('zsh is not installed: only bash was asked')
  let commands = 0
  for (const block of shell) {
    const bash = pasted('bash', ['--norc', '--noprofile', '-i'], block.text)
    commands += bash.length
    assert.ok(bash.length > 0, at(block))
    for (const words of bash)
      assert.ok(!words.includes('#'), `${at(block)}: a comment is an argument to zsh`)
    if (hasZsh) assert.deepEqual(pasted('zsh', ['-f', '-i'], block.text), bash, at(block))
    // Removes quoted text: zsh expands these characters only in unquoted words. The check also runs
    // if zsh is not installed.
    const bare = block.text.replaceAll(/'[^']*'|"(?:[^"\\]|\\.)*"/g, '')
    assert.doesNotMatch(bare, /[?*[\]!#~]/, `${at(block)}: quote it`)
  }
  assert.ok(commands > 40, `${commands} commands`)
})

test('a session runs every documented command, or the list of exceptions contains it', () => {
  const sat = new Set([
    'README.md',
    ...FOLLOW_UP_PAGES,
    'docs/enrolment.md',
    'docs/invoices.md',
    'docs/adding-a-chain.md',
    'docs/local-exchange.md',
    'docs/trading.md',
    'docs/console.md',
    'packages/signer/README.md',
    'packages/devnet/README.md',
    // The commands are run by cli/policy-docs.test.ts, with three nodes.
    'docs/policies.md',
    // The commands are run by cli/approver.test.ts.
    'docs/approver.md',
    // The commands are run by banned-node.long.test.ts.
    'docs/production/replacing-a-banned-node.md',
    // The commands are run by production.long.test.ts, with bundles.
    'docs/production/several-hosts.md',
    'docs/production/disaster.md',
    'docs/production/upgrades.md',
    // The commands are run by release.test.ts, in a temporary repository.
    'docs/releasing.md',
    // The steps are those of rehearsal.long.test.ts, on geth, Bitcoin Core and Litecoin Core.
    'docs/rehearsal.md',
  ])
  assert.deepEqual(
    documents().filter((file) => shellBlocks(file).length > 0 && !sat.has(file)),
    [],
  )
  const all = documents()
    .flatMap(shellBlocks)
    .map(({ text }) => text)
    .join('\n')
  for (const command of Object.keys(TESTED_ELSEWHERE)) assert.ok(all.includes(command), command)
})
