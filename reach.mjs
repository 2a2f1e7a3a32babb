import { readFileSync } from 'node:fs'
import { resolve, dirname } from 'node:path'
import { importsIn } from './test/imports.ts'
import { endpoints } from './packages/platform/src/app/endpoints.ts'
import { globSync } from 'node:fs'
const src = resolve('packages/platform/src')
const memo = new Map()
const codesOf = (p) => [...readFileSync(p,'utf8').matchAll(/new ApiError\(\s*'([A-Z_]+)'/g)].map(m=>m[1])
function reach(p, seen=new Set()) { if (seen.has(p)) return seen; seen.add(p); for (const {specifier,typeOnly} of importsIn(readFileSync(p,'utf8'))) if (!typeOnly && specifier.startsWith('.')) { const t=resolve(dirname(p),specifier); if (/\/(http|app)\//.test(t)&&!t.includes('/families/')) continue; if(t.endsWith('.ts')) reach(t,seen) } return seen }
for (const f of globSync('packages/platform/src/*/*.ts')) { const s=readFileSync(f,'utf8'); const m=s.match(/path: '([^']+)'/g); if(!s.includes('endpoint({')||!m) continue
 const c=new Set(); for (const p of reach(resolve(f))) for(const x of codesOf(p)) c.add(x)
 console.log(m.join(' ').replaceAll('path: ',''), f.replace('packages/platform/src/',''), [...c].filter(x=>!['INVALID_REQUEST','INTERNAL','UNAUTHORIZED','UNKNOWN_FIELD','INVALID_JSON'].includes(x)).sort().join(' ')) }
