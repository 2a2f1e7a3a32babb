import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HANG_MS } from '../../../testing/wait-for.ts'
import { after, before, test } from 'node:test'
import { FOLLOW_UP_PAGES, shellBlocks, TESTED_ELSEWHERE } from '../testing/documented-commands.ts'
import { ROOT } from '../testing/documents.ts'
import { TestPlatform } from '../testing/harness.ts'

/**
 * Runs every command of the documents in order, with one session per document, to detect commands
 * that break a later one.
 */
const platform = new TestPlatform({ mode: 'empty-home' })
const folder = mkdtempSync(join(tmpdir(), 'custody-docs-'))
before(() => platform.start())
after(async () => {
  await platform.remove()
  rmSync(folder, { recursive: true, force: true })
})

const NODE_HOME = '/var/lib/custody-signer'

const homeOf = (node: number): string => join(platform.home, 'signers', `node-${node}`)

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => {
    server.close(resolve)
  })
  return port
}

/**
 * Adapts the lines of a block to this environment. A line that names a node's home runs at node 1;
 * if it uses a value that node 1 has printed, it runs at nodes 2 and 3.
 */
function lines(text: string): string[] {
  return text
    .replaceAll('http://127.0.0.1:8080', platform.base)
    .split('\n')
    .flatMap((line) => {
      if (TESTED_ELSEWHERE[line.trim()] !== undefined) return []
      if (!line.includes(NODE_HOME)) return [line]
      const nodes = /"\$(API_KEY|ORDER)"/.test(line) ? [2, 3] : [1]
      return nodes.map((node) => line.replace(NODE_HOME, homeOf(node)))
    })
}

/**
 * Values that a reader copies from the output of one block into the next, as variable and pattern.
 */
const TAKEN: [string, RegExp][] = [
  ['API_KEY', /^API key ([0-9a-f-]{36}), index/m],
  ['ORDER', /--order ([0-9a-f]{32})/],
]

/**
 * Runs the blocks of documents in sequence in one shell. Each block has the variables that the
 * earlier blocks have set.
 */
async function sitting(...files: string[]): Promise<number> {
  const run = files.flatMap((file) => {
    const blocks = shellBlocks(file)
    assert.ok(blocks.length > 0, file)
    return blocks
  })
  const variables = join(folder, 'variables')
  writeFileSync(variables, '')
  let commands = 0
  for (const block of run) {
    const text = lines(block.text).join('\n').trim()
    if (text === '') continue
    commands += text.split('\n').length
    const script = join(folder, 'block.sh')
    writeFileSync(
      script,
      `set -eu -o pipefail
npx() { local program="$1"; shift; if [ "$program" = node ]; then '${process.execPath}' "$@"; else '${process.execPath}' '${ROOT}packages/platform/bin/custody.mjs' "$@"; fi; }
set -a; . '${variables}'; set +a
${text}
{ declare -p | grep -E '^declare -[-x]+ (CUSTODY_API_KEY|CUSTODY_KEY|ACCOUNT|TRADE|INVOICE|JWT|ADDRESS|TRX_ADDRESS|STAKE|UNSTAKE|API_KEY|ORDER)=' | sed -E 's/^declare -[-x]+ //'; } > '${variables}' || true
`,
    )
    const { status, output } = await execute(script)
    assert.equal(status, 0, `${block.file}:${block.line}\n${text}\n${output.slice(-4000)}`)
    const taken = TAKEN.flatMap(([name, pattern]) => {
      const value = pattern.exec(output)?.[1]
      return value === undefined ? [] : [`${name}=${value}\n`]
    })
    if (taken.length > 0) writeFileSync(variables, taken.join(''), { flag: 'a' })
  }
  return commands
}

/**
 * Runs a script with bash.
 * @param until if given, standard input stays open until the output matches
 */
async function execute(
  script: string,
  until?: RegExp,
): Promise<{ status: number | null; output: string }> {
  const child = spawn('bash', [script], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, CUSTODY_HOME: platform.home },
  })
  let output = ''
  if (!until) child.stdin.end()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (until?.test(output)) child.stdin.end()
    })
  }
  const timer = setTimeout(() => child.kill('SIGTERM'), HANG_MS)
  const status = await new Promise<number | null>((resolve) => {
    child.once('close', resolve)
  })
  clearTimeout(timer)
  return { status, output }
}

/** Pages that continue in the terminal of the README's first transfer, in the order of the site. */
test('every command of README and its follow-up pages succeeds in one session', async (t) => {
  t.diagnostic(`${await sitting('README.md', ...FOLLOW_UP_PAGES)} lines`)
})

test('the commands of docs/enrolment.md succeed, on one machine and then node by node', async () => {
  await sitting('docs/enrolment.md')
})

test('the commands of docs/invoices.md succeed, from the wallet to the paid invoice', async () => {
  await sitting('docs/invoices.md')
})

test('the commands of docs/adding-a-chain.md print the address of a local contract', async () => {
  await sitting('docs/adding-a-chain.md')
})

test('the commands of docs/trading.md succeed, from the account to a cancelled limit order', async () => {
  await sitting('docs/trading.md')
})

test('the commands of docs/console.md invite a member, and export and verify the audit log', async () => {
  await sitting('docs/console.md')
})

test('the commands of docs/local-exchange.md create a key, an address and a fault', async () => {
  await sitting('docs/local-exchange.md')
})

test('a signer node and the local chains start alone with the commands of their READMEs', async () => {
  for (const file of ['packages/signer/README.md', 'packages/devnet/README.md']) {
    for (const block of shellBlocks(file)) {
      const ports = [await freePort(), await freePort(), await freePort()]
      const script = join(folder, 'block.sh')
      const text = block.text
        .replace('7101,7102,7103', ports.join(','))
        .replace('--port 7200', `--port ${ports[0]}`)
        .replaceAll('npx node packages/', `'${process.execPath}' ${ROOT}packages/`)
      // The processes end when their standard input closes.
      const ready = /^(signer 1|devnet) ready http/m
      writeFileSync(script, `set -eu\n${text}`)
      const { status, output } = await execute(script, ready)
      assert.match(output, ready, `${file}:${block.line}`)
      assert.equal(status, 0, output)
    }
  }
})
