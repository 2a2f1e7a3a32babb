export * from './evaluation/evaluate.ts'
