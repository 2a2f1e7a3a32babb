import { endpoints } from './packages/platform/src/app/endpoints.ts'
for (const e of endpoints) console.log([e.method, e.path, e.access, e.streams?'STREAM':'', e.response? 'R':'-', e.body?'B':'', e.query?'Q':'', JSON.stringify(e.summary)].join(' '))
