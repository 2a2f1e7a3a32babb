import { z } from 'zod'
import { transactionShape } from './packages/platform/src/engine/present.ts'
console.log(JSON.stringify(z.toJSONSchema(transactionShape,{io:'input'})).slice(0,300))
console.log(JSON.stringify(z.toJSONSchema(z.object({data:z.array(transactionShape.nullable())}),{io:'input'})).slice(0,400))
console.log(JSON.stringify(z.toJSONSchema(transactionShape.extend({a:z.string()}),{io:'input'})).slice(-600))
