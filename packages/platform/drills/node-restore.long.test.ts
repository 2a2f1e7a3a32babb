import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fingerprintOf, type Pinned } from '../../signer/src/fingerprints.ts'
import { restoreHome } from '../../signer/src/setup.ts'
import { identityFolder, signersFolder } from '../src/core/data-dir.ts'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests that the operator of a node whose host was lost restores the node with the commands of
 * docs/production/disaster.md.
 */
const platform = new TestPlatform()
const aside = mkdtempSync(join(tmpdir(), 'custody-aside-'))
let user: User

before(async () => {
  await platform.start()
  user = await platform.user('acme')
  cpSync(join(signersFolder(platform.home), 'recovery-3'), join(aside, 'recovery-3'))
})
after(async () => {
  await platform.remove()
  rmSync(aside, { recursive: true, force: true })
})

test('the operator previews the restore of a lost node, and restores it from backup and peers', async () => {
  await fundedWallet(platform, user, 'ETH', '2')
  const [file, secret] = [join(aside, 'node-3.json'), join(aside, 'recovery-3')]
  assert.equal((await platform.cli('signer', 'backup', '--node', '3', '--out', file)).status, 0)
  const { nodes } = JSON.parse(
    readFileSync(join(identityFolder(platform.home), 'peers.json'), 'utf8'),
  ) as { nodes: (Pinned & { node: number })[] }
  const home = join(signersFolder(platform.home), 'node-3')
  await platform.nodesDown([3], async () => {
    rmSync(home, { recursive: true })
    await restoreHome({
      home,
      file,
      recoverySecretFile: secret,
      print: fingerprintOf(3, nodes.find(({ node }) => node === 3) as Pinned),
    })
  })
  const restore = (...more: string[]) =>
    platform.cli(
      'signer',
      'restore',
      '--node',
      '3',
      '--in',
      file,
      '--recovery-secret',
      secret,
      ...more,
    )
  const preview = await restore('--preview')
  assert.equal(preview.status, 0, preview.stderr)
  assert.match(preview.stdout, /^signer 3: it would be restored from a backup of \d{4}-\d\d-\d\dT/m)
  assert.match(
    preview.stdout,
    new RegExp(`^enrolled: ${user.apiKey} \\S+ full acme/main \\(1\\)$`, 'm'),
  )
  const [, code] = /with --confirm ([0-9a-f]{16})$/m.exec(preview.stdout) ?? []
  const wrong = await restore('--confirm', 'ab')
  assert.equal(wrong.status, 1)
  assert.match(
    wrong.stderr,
    /confirm belongs to another preview: request the preview again and check it/,
  )
  const restored = await restore('--confirm', code as string)
  assert.equal(restored.status, 0, restored.stderr)
  assert.match(restored.stdout, /^signer 3: restored from a backup of/m)
  // A request that is signed in the second of the restore may be older than the restore, and
  // would be refused.
  const second = Math.floor(Date.now() / 1000)
  await waitFor('the next second', async () => Math.floor(Date.now() / 1000) > second)
  // The restored node signs while one of the other nodes is stopped.
  await platform.nodesDown([1], async () => {
    const body = transferBody('ETH', '0.5', '0x00000000000000000000000000000000000000AA', {
      sequence_id: 'after',
    })
    const {
      status,
      body: transfer,
      text,
    } = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
    assert.equal(status, 200, text)
    await assertConfirmed(user, transfer.id)
  })
})
