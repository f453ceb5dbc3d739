import { Module } from '@nestjs/common';
import { Settings } from '../settings.js';
import { Database } from './database.js';
import { openDatabase } from './open-database.js';

@Module({
  providers: [{ provide: Database, inject: [Settings], useFactory: openDatabase }],
  exports: [Database],
})
export class DatabaseModule {}
