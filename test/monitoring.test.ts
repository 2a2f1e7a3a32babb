import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createMetrics } from '../packages/platform/src/core/metrics.ts'
import { read, ROOT } from '../packages/platform/testing/documents.ts'

/**
 * Tests of the alerts and the dashboard in deploy/monitoring: each uses existing metrics, has a
 * runbook, and fires under its documented conditions.
 */
const FOLDER = join(ROOT, 'deploy/monitoring')
const rules = readFileSync(join(FOLDER, 'custody.rules.yml'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'custody-monitoring-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const alerts = [...rules.matchAll(/- alert: (\w+)\n([^]*?)(?=\n {6}- alert:|$)/g)].map(
  ([, name = '', body = '']) => ({ name, body }),
)
interface Panel {
  title: string
  targets?: { expr: string }[]
}
const dashboard = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as {
  panels: Panel[]
}
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
)

const isThere = spawnSync('promtool', ['--version']).status === 0
const promtool = { skip: isThere ? false : 'promtool is not installed (Debian: prometheus)' }

function run(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', cwd: FOLDER })
  assert.equal(status, 0, `${stdout}\n${stderr}`)
}

test('alerts and panels use existing metrics, and each own metric has an alert or a panel', async () => {
  const metrics = createMetrics()
  metrics.watchProcess()
  const exported = new Set(
    [...(await metrics.text()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name as string),
  )
  assert.ok(exported.size > 40, `${exported.size} metrics`)
  const expressions = [
    ...alerts.map(({ name, body }) => ({
      of: name,
      text: /expr: ([^]*?)\n {8}\w+:/.exec(body)?.[1] ?? '',
    })),
    ...queries.map(({ title, expr }) => ({ of: title, text: expr })),
  ]
  const queried = new Set<string>()
  for (const { of, text } of expressions) {
    const names = [...text.matchAll(/\b(?:custody|process|nodejs)_\w+/g)].map(([name]) =>
      name.replace(/_bucket$/, ''),
    )
    assert.ok(names.length > 0 || text.includes('up{'), `${of} asks for nothing`)
    for (const name of names) {
      assert.ok(exported.has(name), `${of}: there is no metric ${name}`)
      queried.add(name)
    }
  }
  const page = read('docs/production/monitoring.md')
  for (const name of exported) {
    if (!name.startsWith('custody_')) continue
    assert.ok(queried.has(name), `${name} is in no alert and no panel`)
    assert.ok(page.includes(`\`${name}\``), `${name} is not in docs/production/monitoring.md`)
  }
})

test('each alert has a runbook, a severity and a test, and each runbook has an alert', () => {
  assert.ok(alerts.length > 20, `${alerts.length} alerts`)
  const headings = [...read('docs/production/runbooks.md').matchAll(/^## (.+)$/gm)].map(
    ([, heading]) => heading as string,
  )
  assert.deepEqual([...headings].sort(), alerts.map(({ name }) => name).sort())
  const tests = readFileSync(join(FOLDER, 'custody.rules.test.yml'), 'utf8')
  for (const { name, body } of alerts) {
    assert.match(body, /severity: (page|ticket) ?\}/, name)
    assert.ok(body.includes(`runbook_url: docs/production/runbooks.md#${name.toLowerCase()}`), name)
    for (const part of ['summary: ', 'description: '])
      assert.ok(body.includes(part), `${name}: ${part}`)
    assert.ok(tests.includes(`- name: ${name}\n`), `${name} has no test`)
  }
  assert.ok(
    read('docs/production/monitoring.md').includes(`${alerts.length} alerts`),
    'the page says how many',
  )
})

test('the page about timers has a section for each alert about scheduled work', () => {
  const names = [
    ...readFileSync(join(FOLDER, 'schedule.rules.yml'), 'utf8').matchAll(/- alert: (\w+)/g),
  ].map(([, name]) => name as string)
  const sections = [...read('docs/production/timers.md').matchAll(/^### (Custody\w+)$/gm)].map(
    ([, name]) => name as string,
  )
  assert.ok(names.length > 0)
  assert.deepEqual(names.sort(), sections.sort())
})

test(
  'Prometheus accepts the configuration, and each alert fires exactly when its test says',
  promtool,
  () => {
    run('check', 'config', 'prometheus.yml')
    run('test', 'rules', 'custody.rules.test.yml', 'schedule.rules.test.yml')
  },
)

test('Prometheus accepts each query of the dashboard', promtool, () => {
  const file = join(folder, 'panels.yml')
  const quoted = queries.map(
    ({ expr }, at) => `      - {record: 'panel:${at}', expr: '${expr.replaceAll("'", "''")}'}`,
  )
  writeFileSync(file, `groups:\n  - name: panels\n    rules:\n${quoted.join('\n')}\n`)
  run('check', 'rules', file)
})
