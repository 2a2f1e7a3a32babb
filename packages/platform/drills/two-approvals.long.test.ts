import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { PAGE_WAIT_MS, startBrowser } from '../../../testing/browser.ts'
import { HANG_MS } from '../../../testing/wait-for.ts'
import { shellBlocks } from '../testing/documented-commands.ts'
import { ROOT } from '../testing/documents.ts'
import { TestPlatform } from '../testing/harness.ts'

/**
 * Follows the exercise at the beginning of docs/policies.md literally, after the first transfer of
 * README: its commands in a shell, and its clicks in a browser with virtual authenticators.
 */
const PAGE = 'docs/policies.md'
const platform = new TestPlatform({ mode: 'empty-home' })
const folder = mkdtempSync(join(tmpdir(), 'custody-exercise-'))
const pages: ChildProcess[] = []
let browser: Browser
before(async () => {
  await platform.start()
  browser = await startBrowser()
})
after(async () => {
  await browser?.close()
  for (const child of pages) child.kill('SIGTERM')
  await platform.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a script in the reader's folder, with the variables that earlier scripts have set. */
function shell(text: string): ChildProcess {
  const variables = join(folder, 'variables')
  writeFileSync(variables, '', { flag: 'a' })
  const script = `set -eu -o pipefail
npx() { shift; '${process.execPath}' '${ROOT}packages/platform/bin/custody.mjs' "$@"; }
set -a; . '${variables}'; set +a
${text.replaceAll('http://127.0.0.1:8080', platform.base)}
{ declare -p | grep -E '^declare -[-x]+ (CUSTODY_API_KEY|CUSTODY_KEY|ADDRESS)=' | sed -E 's/^declare -[-x]+ //'; } > '${variables}' || true
`
  return spawn('bash', ['-c', script], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, CUSTODY_HOME: platform.home },
    timeout: HANG_MS,
  })
}

/** Runs a block to its end, and returns what it prints. */
async function run(text: string): Promise<string> {
  const child = shell(text)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const status = await new Promise((resolve) => child.once('close', resolve))
  assert.equal(status, 0, `${text}\n${output}`)
  return output
}

/** Starts the approver page of a person with a program that runs until the end of the test. */
async function startPage(dir: string): Promise<Page> {
  const program = join(ROOT, 'packages/platform/bin/custody.mjs')
  const child = spawn(process.execPath, [program, 'approver', 'run', '--dir', dir], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, CUSTODY_HOME: platform.home },
  })
  pages.push(child)
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.once('close', () => reject(new Error(output)))
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        const found = /http:\/\/localhost:\d+/.exec(output)?.[0]
        if (found !== undefined) resolve(found)
      })
  })
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  context.setDefaultTimeout(PAGE_WAIT_MS)
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  await page.goto(url)
  return page
}

const select = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const open = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).click()

/** Creates a passkey, and returns its copied entry. */
async function createPasskey(page: Page): Promise<string> {
  await open(page, 'My passkey')
  await select(page, 'Create a passkey')
  await page.getByText('The passkey was created').waitFor()
  await select(page, 'Copy')
  await page.getByText('Copied', { exact: true }).waitFor()
  return page.evaluate<string>('navigator.clipboard.readText()')
}

/** Signs a policy file on a page, and stores the saved file. */
async function sign(page: Page, from: string, to: string): Promise<void> {
  await open(page, 'Sign a document')
  await page.getByLabel('Policy file').setInputFiles(join(folder, from))
  await select(page, 'Sign with my passkey')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    select(page, 'Save the file'),
  ])
  await download.saveAs(join(folder, to))
}

/** Fills in the document as step 4 describes. */
function fillIn(entries: readonly string[], spki: string): void {
  const file = join(folder, 'two-people.json')
  const text = entries.reduce(
    (before, entry, at) =>
      before.replace(new RegExp(`\\{[^{}]*FILL-IN-SPKI-OF-PERSON-${at + 1}"\\s*\\}`), () => entry),
    readFileSync(file, 'utf8'),
  )
  writeFileSync(file, text.replace('FILL-IN-SPKI-OF-PERSON-3', spki))
}

test('the exercise of docs/policies.md confirms a transfer after two approvals with passkeys', async () => {
  for (const { text } of shellBlocks('README.md').filter((block) =>
    /custody (?!audit)/.test(block.text),
  ))
    await run(text)
  const blocks = shellBlocks(PAGE).filter(({ place }) => place === 'two-approvals')
  const [make, runAlice, runBob, draft, check, install, confirm] = blocks.map(({ text }) => text)
  assert.equal(blocks.length, 7)
  const made = await run(make as string)
  assert.equal(runAlice?.trim(), 'npx custody approver run --dir alice')
  assert.equal(runBob?.trim(), 'npx custody approver run --dir bob')
  const [alice, bob] = [await startPage('alice'), await startPage('bob')]
  await run(draft as string)
  fillIn(
    [await createPasskey(alice), await createPasskey(bob)],
    /^spki:\s+(\S+)$/m.exec(made)?.[1] ?? '',
  )
  await run(check as string)
  await sign(alice, 'two-people.json', 'of-alice.json')
  await sign(bob, 'of-alice.json', 'signed.json')
  assert.match(await run(install as string), /approvals so far: 0 of 2 of treasury/)
  for (const page of [alice, bob]) {
    await open(page, 'Approvals')
    await page.getByRole('link', { name: /^Review/ }).click()
    await select(page, 'Approve')
    await page.getByText(page === bob ? 'continues.' : 'Your decision is stored').waitFor()
  }
  assert.match(await run(confirm as string), /"status": "confirmed"/)
})
