import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runUnit, settingsOf, UNITS } from '../packages/platform/testing/hosts/unit-command.ts'

const COMMAND = '/opt/custody/bin/custody'
/** Maximum exposure of a unit in tenths; systemd rates values up to 2.0 as safe. */
const EXPOSURE_MAX = '15'

const there = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' })
const skip = there.status === 0 ? false : 'there is no systemd-analyze (Debian: systemd)'
const folder = mkdtempSync(join(tmpdir(), 'custody-units-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Returns the unit file as it would be on a host, except for the path of the bundle. */
function placed(name: string, as: string): string {
  const text = readFileSync(join(UNITS, name), 'utf8')
  assert.ok(text.includes(`ExecStart=${COMMAND} `))
  const file = join(folder, as)
  writeFileSync(file, text.replace(COMMAND, process.execPath))
  return file
}

for (const [name, as] of [
  ['custody@.service', 'custody@worker.service'],
  ['custody-signer.service', 'custody-signer.service'],
] as const) {
  test(`${name} is a valid unit, and restricts its process`, { skip }, () => {
    const file = placed(name, as)
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
      encoding: 'utf8',
    })
    assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, '', ''])
    const judged = spawnSync(
      'systemd-analyze',
      ['security', '--no-pager', '--offline=true', `--threshold=${EXPOSURE_MAX}`, file],
      { encoding: 'utf8' },
    )
    assert.equal(judged.status, 0, judged.stdout.slice(-400) + judged.stderr)
    const text = readFileSync(file, 'utf8')
    for (const line of [
      'NoNewPrivileges=yes',
      'ProtectSystem=strict',
      'CapabilityBoundingSet=',
      'Restart=always',
    ])
      assert.ok(text.includes(`${line}\n`), line)
    for (const line of ['LimitCORE=0', 'MemorySwapMax=0'])
      assert.ok(text.includes(`\n${line}\n`), line)
    if (name === 'custody@.service') assert.match(text, /^MemoryMax=\d+G$/m)
    assert.match(text, /^LoadCredential=/m)
    assert.doesNotMatch(
      text,
      /^Environment=(DATABASE_URL|CUSTODY_SECRETS_KEY)/m,
      'the environment of a unit is shown to everybody',
    )
  })
}

/** Scheduled work: each service with its timer. */
const TIMED = [
  ['custody-ofac@.service', 'custody-ofac@scanner.service'],
  ['custody-backup.service', 'custody-backup.service'],
] as const
const SHIPPED = fileURLToPath(
  new URL('../packages/platform/data/ofac-addresses.json', import.meta.url),
)
const hasCurl = spawnSync('curl', ['--version']).error === undefined

test('each timer has a service, runs missed jobs, and has a random delay', () => {
  const timers = readdirSync(UNITS)
    .filter((name) => name.endsWith('.timer'))
    .sort()
  assert.deepEqual(timers, TIMED.map(([name]) => name.replace('.service', '.timer')).sort())
  for (const timer of timers) {
    assert.deepEqual(
      [settingsOf(timer, 'Persistent'), settingsOf(timer, 'WantedBy')],
      [['true'], ['timers.target']],
      timer,
    )
    assert.equal(settingsOf(timer, 'RandomizedDelaySec').length, 1, timer)
    assert.match(settingsOf(timer, 'OnCalendar').join(), / UTC$/, timer)
    const service = timer.replace('.timer', '.service')
    assert.deepEqual(
      [settingsOf(service, 'Type'), settingsOf(service, 'TimeoutStartSec').length],
      [['oneshot'], 1],
      service,
    )
    // A failure stays visible: systemd does not restart the service, and no exit code but 0 counts as
    // success.
    for (const name of ['Restart', 'SuccessExitStatus', 'RemainAfterExit'])
      assert.deepEqual(settingsOf(service, name), [], `${service} ${name}`)
  }
})

for (const [name, as] of TIMED) {
  test(
    `${name} and its timer are valid, and the service is restricted like the others`,
    { skip },
    () => {
      const units = mkdtempSync(join(folder, 'timed-'))
      for (const each of [name, name.replace('.service', '.timer')]) {
        const text = readFileSync(join(UNITS, each), 'utf8')
          .replaceAll(COMMAND, process.execPath)
          .replace('/usr/bin/curl', process.execPath)
        writeFileSync(join(units, each), text)
      }
      const env = { ...process.env, SYSTEMD_UNIT_PATH: `${units}:` }
      const verified = spawnSync(
        'systemd-analyze',
        ['verify', '--man=no', as, as.replace('.service', '.timer')],
        { encoding: 'utf8', env },
      )
      assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, '', ''])
      writeFileSync(join(folder, as), readFileSync(join(units, name)))
      const judged = spawnSync(
        'systemd-analyze',
        [
          'security',
          '--no-pager',
          '--offline=true',
          `--threshold=${EXPOSURE_MAX}`,
          join(folder, as),
        ],
        { encoding: 'utf8' },
      )
      assert.equal(judged.status, 0, judged.stdout.slice(-400) + judged.stderr)
      const [calendar = ''] = settingsOf(name.replace('.service', '.timer'), 'OnCalendar')
      assert.equal(spawnSync('systemd-analyze', ['calendar', calendar]).status, 0, calendar)
    },
  )
}

test('the refresh of a timer runs as the user who owns its data directory', () => {
  assert.deepEqual(settingsOf('custody@.service', 'User'), ['custody-%i'])
  const name = 'custody-ofac@.service'
  for (const setting of ['User', 'DynamicUser', 'StateDirectory'])
    assert.deepEqual(settingsOf(name, setting), settingsOf('custody@.service', setting), setting)
  assert.ok(settingsOf(name, 'Environment').includes('CUSTODY_HOME=%S/custody-%i'))
  assert.deepEqual(
    [...settingsOf(name, 'LoadCredential'), ...settingsOf(name, 'EnvironmentFile')].filter(
      (each) => !each.includes('ofac.env'),
    ),
    [],
    'it needs no secret',
  )
})

test('the refresh of a timer replaces the list in the data directory of its instance', () => {
  const places = { '%C': join(folder, 'cache'), '%i': 'worker' }
  const cache = join(folder, 'cache', 'custody-ofac-worker')
  mkdirSync(cache, { recursive: true })
  const home = mkdtempSync(join(folder, 'home-'))
  const none = runUnit('custody-ofac@.service', 'ExecStart', places, { CUSTODY_HOME: home })
  assert.equal(none.status, 1, none.stderr)
  assert.match(none.stderr, /the file .* does not exist/)
  const list = JSON.parse(readFileSync(SHIPPED, 'utf8')) as {
    published: string
    addresses: object[]
  }
  const added = { asset: 'ETH', address: `0x${'5'.repeat(40)}` }
  writeFileSync(
    join(cache, 'list.xml'),
    JSON.stringify({ ...list, published: '2199-01-01', addresses: [...list.addresses, added] }),
  )
  const { status, stdout, stderr } = runUnit('custody-ofac@.service', 'ExecStart', places, {
    CUSTODY_HOME: home,
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, / sanctioned addresses as of 2199-01-01: 1 added, 0 removed/)
  assert.match(readFileSync(join(home, 'ofac-addresses.json'), 'utf8'), /0x5{40}/)
})

test(
  'the download of a timer accepts HTTPS only',
  { skip: hasCurl ? false : 'curl is not installed' },
  () => {
    const places = { '%C': join(folder, 'http'), '%i': 'worker', '/usr/bin/curl': 'curl' }
    mkdirSync(join(folder, 'http', 'custody-ofac-worker'), { recursive: true })
    const { status, stderr } = runUnit('custody-ofac@.service', 'ExecStartPre', places, {
      OFAC_LIST_URL: 'http://127.0.0.1:9/list.xml',
    })
    assert.equal(status, 1, stderr)
    assert.match(stderr, /Protocol "http" (not supported or )?disabled/)
    assert.equal(existsSync(join(folder, 'http', 'custody-ofac-worker', 'list.xml')), false)
  },
)
